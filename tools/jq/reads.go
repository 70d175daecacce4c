package jq

import "github.com/itchyny/gojq"

// maxPlaces bounds how many places are told apart.
const maxPlaces = 1000

// readsOf is what a query reads of its input; nil: all of it. Where results are only counted they are not read.
func readsOf(q *gojq.Query, counted bool) *node {
	root := &node{}
	if q == nil {
		root.all = !counted
		return root.trim()
	}
	r := &reads{}
	out := r.query(q, places{root})
	if !counted {
		out.whole()
	}
	if r.places > maxPlaces {
		return nil
	}
	return root.trim()
}

// places are where values that flow through a filter stand in its input; those it made stand nowhere.
type places []*node

// whole marks places as read whole.
func (ps places) whole() {
	for _, n := range ps {
		n.all = true
	}
}

func (ps places) and(more places) places {
	out := ps[:len(ps):len(ps)]
	for _, n := range more {
		known := false
		for _, o := range out {
			known = known || o == n
		}
		if !known {
			out = append(out, n)
		}
	}
	return out
}

// reads walks a filter.
type reads struct{ places int }

func (r *reads) each(ps places) (out places) {
	for _, n := range ps {
		if n.each == nil {
			n.each = &node{}
			r.places++
		}
		out = out.and(places{n.each})
	}
	return out
}

func (r *reads) key(ps places, name string) (out places) {
	for _, n := range ps {
		if n.keys == nil {
			n.keys = map[string]*node{}
		}
		if n.keys[name] == nil {
			n.keys[name] = &node{}
			r.places++
		}
		out = out.and(places{n.keys[name]})
	}
	return out
}

// query is where what flows out of q stands, where what flows in stands at in.
func (r *reads) query(q *gojq.Query, in places) places {
	if q == nil {
		return in
	}
	if len(q.FuncDefs) > 0 || q.Meta != nil || len(q.Imports) > 0 || r.places > maxPlaces {
		in.whole()
		return nil
	}
	if q.Term != nil {
		return r.term(q.Term, in)
	}
	switch q.Op {
	case gojq.OpPipe:
		left := r.query(q.Left, in)
		if len(q.Patterns) == 0 {
			return r.query(q.Right, left)
		}
		left.whole()
		if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
			in.whole()
		}
		return r.query(q.Right, in)
	case gojq.OpComma:
		return r.query(q.Left, in).and(r.query(q.Right, in))
	case gojq.OpAlt:
		left := r.query(q.Left, in)
		left.whole()
		return left.and(r.query(q.Right, in))
	case gojq.OpAnd, gojq.OpOr, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe,
		gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		r.query(q.Left, in).whole()
		r.query(q.Right, in).whole()
		return nil
	default: // assignments give their input back, changed
		in.whole()
		return nil
	}
}

func (r *reads) term(t *gojq.Term, in places) places {
	out := r.head(t, in)
	for _, s := range t.SuffixList {
		switch {
		case s.Iter:
			out = r.each(out)
		case s.Index != nil:
			out = r.index(s.Index, out, in)
		}
	}
	return out
}

func (r *reads) head(t *gojq.Term, in places) places {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
		return nil
	case gojq.TermTypeIndex:
		return r.index(t.Index, in, in)
	case gojq.TermTypeFunc:
		return r.function(t.Func, in)
	case gojq.TermTypeString:
		return r.text(t.Str, in)
	case gojq.TermTypeFormat:
		if t.Str != nil {
			return r.text(t.Str, in)
		}
	case gojq.TermTypeObject:
		return r.object(t.Object, in)
	case gojq.TermTypeArray:
		if t.Array.Query != nil {
			r.query(t.Array.Query, in).whole()
		}
		return nil
	case gojq.TermTypeUnary:
		r.term(t.Unary.Term, in).whole()
		return nil
	case gojq.TermTypeIf:
		return r.branches(t.If, in)
	case gojq.TermTypeTry:
		out := r.query(t.Try.Body, in)
		if t.Try.Catch != nil {
			out = out.and(r.query(t.Try.Catch, nil))
		}
		return out
	case gojq.TermTypeQuery:
		return r.query(t.Query, in)
	}
	in.whole()
	return nil
}

func (r *reads) text(s *gojq.String, in places) places {
	for _, q := range s.Queries {
		r.query(q, in).whole()
	}
	return nil
}

func (r *reads) branches(i *gojq.If, in places) places {
	r.query(i.Cond, in).whole()
	out := r.query(i.Then, in)
	for _, e := range i.Elif {
		r.query(e.Cond, in).whole()
		out = out.and(r.query(e.Then, in))
	}
	return out.and(r.query(i.Else, in))
}

// index leads from of by a name or number; what stands in the brackets sees in.
func (r *reads) index(x *gojq.Index, of, in places) places {
	name, plain := x.Name, x.Name != ""
	if x.Str != nil && x.Str.Queries == nil {
		name, plain = x.Str.Str, true
	} else if s, ok := literal(x.Start); ok && !x.IsSlice {
		name, plain = s, true
	}
	if plain {
		return r.key(of, name)
	}
	if _, ok := whole(x.Start); ok && !x.IsSlice {
		for _, n := range of {
			n.indexed = true
		}
		return r.each(of)
	}
	if x.Str != nil {
		r.text(x.Str, in)
	}
	for _, q := range []*gojq.Query{x.Start, x.End} {
		if q != nil {
			r.query(q, in).whole()
		}
	}
	of.whole()
	return nil
}

func (r *reads) object(o *gojq.Object, in places) places {
	for _, kv := range o.KeyVals {
		switch {
		case kv.KeyQuery != nil:
			r.query(kv.KeyQuery, in).whole()
		case kv.KeyString != nil && kv.KeyString.Queries != nil:
			r.text(kv.KeyString, in)
			if kv.Val == nil {
				in.whole()
			}
		case kv.Val == nil && kv.KeyString != nil:
			r.key(in, kv.KeyString.Str).whole()
		case kv.Val == nil && kv.Key != "" && kv.Key[0] != '$':
			r.key(in, kv.Key).whole()
		}
		if kv.Val != nil {
			r.query(kv.Val, in).whole()
		}
	}
	return nil
}

// function knows what some functions read; the others read all they are given.
func (r *reads) function(f *gojq.Func, in places) places {
	if f.Name[0] == '$' {
		return nil
	}
	switch len(f.Args) {
	case 0:
		switch f.Name {
		case "empty", "input_filename":
			return nil
		case "any", "all":
			r.each(in).whole()
			return nil
		}
	case 1:
		switch f.Name {
		case "select":
			r.query(f.Args[0], in).whole()
			return in
		case "map", "any", "all":
			r.query(f.Args[0], r.each(in)).whole()
			return nil
		case "first":
			return r.query(f.Args[0], in)
		}
	case 2:
		switch f.Name {
		case "limit":
			r.query(f.Args[0], in).whole()
			return r.query(f.Args[1], in)
		case "any", "all":
			r.query(f.Args[1], r.query(f.Args[0], in)).whole()
			return nil
		}
	}
	in.whole()
	return nil
}
