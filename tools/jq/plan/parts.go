package plan

import "github.com/itchyny/gojq"

// withParts returns a term in which f has replaced the queries that run on the input of the term: those in brackets,
// arrays, objects, texts and conditions, but not those of indices and the arguments of functions. {a} becomes {a: .a}.
// For {"a\(.b)"}, which cannot be written so, f gets the identity and its result is ignored.
func withParts(t *gojq.Term, f func(*gojq.Query) *gojq.Query) *gojq.Term {
	with := *t
	replaced := func(q *gojq.Query) *gojq.Query {
		if q == nil {
			return nil
		}
		return f(q)
	}
	text := func(s *gojq.String) *gojq.String {
		if s == nil || s.Queries == nil {
			return s
		}
		to := &gojq.String{Str: s.Str}
		for _, q := range s.Queries {
			if q.Term == nil || q.Term.Str == nil { // not one of the literal parts
				q = asQuery(bracketed(f(q)))
			}
			to.Queries = append(to.Queries, q)
		}
		return to
	}
	switch t.Type {
	case gojq.TermTypeQuery:
		with.Query = f(t.Query)
	case gojq.TermTypeArray:
		with.Array = &gojq.Array{Query: replaced(t.Array.Query)}
	case gojq.TermTypeString, gojq.TermTypeFormat:
		with.Str = text(t.Str)
	case gojq.TermTypeUnary:
		with.Unary = &gojq.Unary{Op: t.Unary.Op, Term: bracketed(f(asQuery(t.Unary.Term)))}
	case gojq.TermTypeIf:
		with.If = &gojq.If{Cond: f(t.If.Cond), Then: f(t.If.Then), Else: replaced(t.If.Else)}
		for _, e := range t.If.Elif {
			with.If.Elif = append(with.If.Elif, &gojq.IfElif{Cond: f(e.Cond), Then: f(e.Then)})
		}
	case gojq.TermTypeObject:
		with.Object = &gojq.Object{}
		for _, kv := range t.Object.KeyVals {
			key, value := member(kv)
			to := &gojq.ObjectKeyVal{
				Key: key, KeyString: text(kv.KeyString), KeyQuery: replaced(kv.KeyQuery), Val: f(value),
			}
			if computesKey(kv) {
				to.Val = nil
			}
			with.Object.KeyVals = append(with.Object.KeyVals, to)
		}
	}
	return &with
}

// parts returns the queries that withParts replaces.
func parts(t *gojq.Term) (all []*gojq.Query) {
	withParts(t, func(q *gojq.Query) *gojq.Query {
		all = append(all, q)
		return q
	})
	return all
}

// member returns the key of a member of an object, if it is a name, and the query of its value.
func member(kv *gojq.ObjectKeyVal) (key string, value *gojq.Query) {
	switch {
	case kv.Val != nil:
		return kv.Key, kv.Val
	case computesKey(kv):
		return "", asQuery(&gojq.Term{Type: gojq.TermTypeIdentity})
	case kv.KeyString != nil: // {"a"}
		return "", asQuery(&gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Str: kv.KeyString}})
	case kv.Key[0] == '$':
		return kv.Key[1:], variable(kv.Key)
	}
	return kv.Key, asQuery(&gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Name: kv.Key}})
}

// computesKey reports whether a member is a text with queries, which is the key and names the value.
func computesKey(kv *gojq.ObjectKeyVal) bool {
	return kv.Val == nil && kv.KeyString != nil && kv.KeyString.Queries != nil
}

// indexQueries returns the queries in the indices of a term and its suffixes.
func indexQueries(t *gojq.Term) (all []*gojq.Query) {
	for _, s := range append([]*gojq.Suffix{{Index: t.Index}}, t.SuffixList...) {
		if s.Index == nil {
			continue
		}
		for _, q := range []*gojq.Query{s.Index.Start, s.Index.End} {
			if q != nil {
				all = append(all, q)
			}
		}
		if s.Index.Str != nil {
			all = append(all, asQuery(&gojq.Term{Type: gojq.TermTypeString, Str: s.Index.Str}))
		}
	}
	return all
}

func all(qs []*gojq.Query, f func(*gojq.Query) bool) bool {
	for _, q := range qs {
		if !f(q) {
			return false
		}
	}
	return true
}
