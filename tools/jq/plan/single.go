package plan

import (
	"strings"

	"github.com/itchyny/gojq"
)

// leaving returns a query with the results of q. It calls leave on those that depend on the value, because the filter
// may keep them.
func (p *inPlace) leaving(q *gojq.Query) *gojq.Query {
	if p.free(q) {
		return q
	}
	if q.Term == nil && q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		return &gojq.Query{Left: p.leaving(q.Left), Op: gojq.OpComma, Right: p.leaving(q.Right)}
	}
	switch t := plainTerm(q); {
	case t == nil:
	case t.Type == gojq.TermTypeQuery:
		return asQuery(bracketed(p.leaving(t.Query)))
	case t.Type == gojq.TermTypeArray: // not free, so it is not empty
		return asQuery(&gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: p.leaving(t.Array.Query)}})
	case t.Type == gojq.TermTypeObject:
		o := &gojq.Object{}
		for _, kv := range t.Object.KeyVals {
			if kv.Val == nil { // {a} and {$x}
				return piped(q, call(leaveName, variable(ownerVar)))
			}
			member := *kv
			member.Val = asQuery(bracketed(p.leaving(kv.Val)))
			o.KeyVals = append(o.KeyVals, &member)
		}
		return asQuery(&gojq.Term{Type: gojq.TermTypeObject, Object: o})
	}
	return piped(asQuery(bracketed(q)), call(leaveName, variable(ownerVar)))
}

// free reports whether the results of a query do not depend on its input.
func (p *inPlace) free(q *gojq.Query) bool {
	if q == nil {
		return true
	}
	if len(q.FuncDefs) > 0 {
		return false
	}
	if q.Term == nil {
		return p.free(q.Left) && (q.Op == gojq.OpPipe && len(q.Patterns) == 0 || q.Op < gojq.OpAssign && p.free(q.Right))
	}
	t := q.Term
	for _, s := range t.SuffixList {
		if x := s.Index; x != nil && !(p.freeText(x.Str) && p.free(x.Start) && p.free(x.End)) {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return true
	case gojq.TermTypeString:
		return p.freeText(t.Str)
	case gojq.TermTypeFormat:
		return t.Str != nil && p.freeText(t.Str)
	case gojq.TermTypeFunc:
		return t.Func.Name[0] == '$'
	case gojq.TermTypeQuery:
		return p.free(t.Query)
	case gojq.TermTypeArray:
		return p.free(t.Array.Query)
	case gojq.TermTypeUnary:
		return p.free(asQuery(t.Unary.Term))
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			dollar := kv.Val == nil && strings.HasPrefix(kv.Key, "$")
			if kv.Val == nil && !dollar || !p.free(kv.Val) || !p.free(kv.KeyQuery) || !p.freeText(kv.KeyString) {
				return false
			}
		}
		return true
	}
	return false
}

func (p *inPlace) freeText(s *gojq.String) bool { return s == nil || all(s.Queries, p.free) }

func all(qs []*gojq.Query, f func(*gojq.Query) bool) bool {
	for _, q := range qs {
		if !f(q) {
			return false
		}
	}
	return true
}

// single reports whether a query surely has exactly one result, or fails.
func (p *inPlace) single(q *gojq.Query) bool {
	if q == nil || len(q.FuncDefs) > 0 {
		return false
	}
	if q.Term != nil {
		return p.singleTerm(q.Term)
	}
	switch q.Op {
	case gojq.OpComma:
		return false
	case gojq.OpPipe:
		return len(q.Patterns) <= 1 && simplePatterns(q.Patterns) && p.single(q.Left) && p.single(q.Right)
	}
	return p.single(q.Right) && (q.Op < gojq.OpAssign && p.single(q.Left) || q.Op >= gojq.OpAssign && p.place(q.Left))
}

func (p *inPlace) singleTerm(t *gojq.Term) bool {
	for _, s := range t.SuffixList {
		if s.Index == nil || !p.singleIndex(s.Index) {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber,
		gojq.TermTypeArray:
		return true
	case gojq.TermTypeIndex:
		return p.singleIndex(t.Index)
	case gojq.TermTypeFunc:
		return p.singleCall(t.Func)
	case gojq.TermTypeString, gojq.TermTypeFormat:
		return p.singleText(t.Str)
	case gojq.TermTypeUnary:
		return p.singleTerm(t.Unary.Term)
	case gojq.TermTypeQuery:
		return p.single(t.Query)
	case gojq.TermTypeIf:
		for _, e := range t.If.Elif {
			if !p.single(e.Cond) || !p.single(e.Then) {
				return false
			}
		}
		return p.single(t.If.Cond) && p.single(t.If.Then) && (t.If.Else == nil || p.single(t.If.Else))
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			if kv.Val != nil && !p.single(kv.Val) || kv.KeyQuery != nil && !p.single(kv.KeyQuery) ||
				!p.singleText(kv.KeyString) {
				return false
			}
		}
		return true
	}
	return false
}

func (p *inPlace) singleText(s *gojq.String) bool { return s == nil || all(s.Queries, p.single) }

// singleCall reports whether a function has one result for each combination of its arguments.
func (p *inPlace) singleCall(f *gojq.Func) bool {
	switch {
	case p.defined[f.Name]:
		return false
	case f.Name[0] == '$':
		return true
	case strings.Contains(gathering, " "+f.Name+" "): // one result, however many its argument has
		return len(f.Args) <= 1
	}
	return strings.Contains(scalarFunctions, " "+f.Name+" ") && all(f.Args, p.single) || len(f.Args) == 0 &&
		(f.Name == "first" || f.Name == "last")
}

// Functions of gojq with exactly one result, between spaces.
const (
	gathering = " map map_values with_entries add any all group_by unique_by sort_by min_by max_by "

	scalarFunctions = " length utf8bytelength not keys min max unique sort reverse flatten type tostring tonumber tojson " +
		"fromjson toarray ascii_downcase ascii_upcase trim ltrim rtrim explode implode floor ceil round sqrt fabs abs pow log " +
		"to_entries from_entries transpose has contains inside startswith endswith ltrimstr rtrimstr split join test index " +
		"rindex indices getpath todate fromdate mktime gmtime strftime strptime error "
)
