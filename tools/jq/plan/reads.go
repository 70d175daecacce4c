package plan

import (
	"slices"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// maxPlaces is how many parts a projection may have; a filter that names more reads its whole input.
const maxPlaces = 1000

// readsOf returns which parts of its input a query reads, nil for the whole input.
func readsOf(q *gojq.Query) *decode.Projection {
	root, r := &decode.Projection{}, &reads{}
	r.query(q, places{root}).whole()
	if r.places > maxPlaces {
		return nil
	}
	return root.Trim()
}

// places are the parts of the input from which a value may come. A value that the filter makes has no places.
type places []*decode.Projection

// whole marks places as read whole.
func (ps places) whole() {
	for _, n := range ps {
		n.All = true
	}
}

// union returns the union of ps union more.
func (ps places) union(more places) places {
	out := ps[:len(ps):len(ps)]
	for _, n := range more {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// reads walks a filter and builds the projection of its input. places counts the parts of the projection.
type reads struct{ places int }

// each returns the places of all elements and member values.
func (r *reads) each(ps places) (out places) {
	for _, n := range ps {
		if n.Each == nil {
			n.Each = &decode.Projection{}
			r.places++
		}
		out = out.union(places{n.Each})
	}
	return out
}

// key returns the places of one member.
func (r *reads) key(ps places, name string) (out places) {
	for _, n := range ps {
		if n.Keys == nil {
			n.Keys = map[string]*decode.Projection{}
		}
		if n.Keys[name] == nil {
			n.Keys[name] = &decode.Projection{}
			r.places++
		}
		out = out.union(places{n.Keys[name]})
	}
	return out
}

// query returns the places of the results of q, whose input has the places in.
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
		return r.query(q.Left, in).union(r.query(q.Right, in))
	case gojq.OpAlt:
		left := r.query(q.Left, in)
		left.whole()
		return left.union(r.query(q.Right, in))
	case gojq.OpAnd, gojq.OpOr, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe,
		gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		r.query(q.Left, in).whole()
		r.query(q.Right, in).whole()
		return nil
	default: // assignments return their changed input
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
	case gojq.TermTypeFormat:
		if t.Str == nil {
			break
		}
		return r.made(t, in)
	case gojq.TermTypeString, gojq.TermTypeObject, gojq.TermTypeArray, gojq.TermTypeUnary:
		return r.made(t, in)
	case gojq.TermTypeIf:
		return r.branches(t.If, in)
	case gojq.TermTypeTry:
		out := r.query(t.Try.Body, in)
		if t.Try.Catch != nil {
			out = out.union(r.query(t.Try.Catch, nil))
		}
		return out
	case gojq.TermTypeQuery:
		return r.query(t.Query, in)
	}
	in.whole()
	return nil
}

// made reads what makes a new value.
func (r *reads) made(t *gojq.Term, in places) places {
	for _, q := range parts(t) {
		r.query(q, in).whole()
	}
	return nil
}

func (r *reads) branches(i *gojq.If, in places) places {
	r.query(i.Cond, in).whole()
	out := r.query(i.Then, in)
	for _, e := range i.Elif {
		r.query(e.Cond, in).whole()
		out = out.union(r.query(e.Then, in))
	}
	return out.union(r.query(i.Else, in))
}

// index returns the places of a member or element of a value with the places of. The input of the query in the brackets
// has the places in.
func (r *reads) index(x *gojq.Index, of, in places) places {
	if name, ok := keyOf(x); ok {
		return r.key(of, name)
	}
	if _, ok := literalIndex(x.Start); ok && !x.IsSlice {
		for _, n := range of {
			n.Indexed = true
		}
		return r.each(of)
	}
	for _, q := range indexQueries(&gojq.Term{Index: x}) {
		r.query(q, in).whole()
	}
	of.whole()
	return nil
}

// function returns the places of the results of a function call. A function that is not listed here reads its whole
// input.
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
