package plan

import (
	"slices"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// Stream says how a filter runs on one element of an array after the other, in memory for one element and the results.
//
// Let S be the elements of an array of the record: .[], .key[], .a.b[] or .[i:j][] with literal i and j ≥ 0, each
// followed by anything that sees only one element (.[].x, .[] | f). gojq runs S on a [gojq.Iter] in place of the array. So
// it runs a filter that reads the array only once, as its first step, whatever follows:
//
//	S                                    results are emitted at once
//	[S], map(f), .[i:j]                  the text of the result array is held
//	first(S), limit(n; S), any(S; f), …  what follows them runs on what they give
//	reduce S as $x (…), foreach S as …
//
// A filter that asks for figures of the array has a fold: Code gives the values that the tallies need, and Final runs
// on their results. All other filters need the whole record: those that need all elements at once (sort_by without a
// slice), name the array (. as $all) or define functions. S alone may define functions: it needs only syntax, which
// nobody can redefine.
//
// All but S hold their results until the end of the record, as gojq does: if the record is not JSON there are none. A
// path needs a first reading, to see that the record is JSON and which duplicate key counts; a fold may have to begin
// again. If the text cannot be read twice, the record is decoded whole for these.
type Stream struct {
	Path     []string           // keys that lead to the array
	From, To int64              // range of elements; To -1: up to the last
	Code     *gojq.Code         // its input is an Iter of the elements
	Reads    *decode.Projection // parts of an element that Code reads
	Form     Form
	Tallies  []Tally    // of a fold
	Final    *gojq.Code // of a fold; its input is the values of the tallies
}

// Form says how the results of the code become results of the filter.
type Form int

// The forms.
const (
	Flow   Form = iota // each is a result
	Held               // each is a result once the record is read
	Gather             // one array of all of them is the result
	Folded             // they are rows of values for the tallies
)

// stream returns the stream of a query, nil if the query needs the whole record.
func (p *program) stream(q *gojq.Query) *Stream {
	if q.Meta != nil || len(q.Imports) > 0 {
		return nil
	}
	bare := *q
	bare.FuncDefs = nil
	s := &Stream{To: -1}
	all := s.leading(stagesIn(&bare))
	switch {
	case len(all) > 0 && all[0].iterates():
		of := joined(all)
		of.FuncDefs = q.FuncDefs
		return p.compileStream(s, of)
	case len(q.FuncDefs) > 0:
		return nil
	case len(all) == 0:
		if s.Form = Gather; s.From == 0 && s.To < 0 { // the value as it is
			return nil
		}
		return p.compileStream(s, asQuery(iterated()))
	}
	inner := *s
	of := inner.strip(joined(all))
	if of != nil {
		*s, all = inner, stagesIn(of)
	}
	if f := p.fold(*s, all); f != nil || of == nil {
		return f
	}
	if s.Form = Held; len(all) == 1 {
		if each, ok := mapped(all[0].term); ok {
			s.Form, of = Gather, piped(asQuery(iterated()), each)
		} else if all[0].term.Type == gojq.TermTypeArray {
			s.Form, of = Gather, all[0].term.Array.Query
		}
	}
	return p.compileStream(s, of)
}

// compileStream compiles the query of a stream.
func (p *program) compileStream(s *Stream, q *gojq.Query) *Stream {
	var err error
	if s.Code, err = p.compile(q); err != nil {
		return nil
	}
	s.Reads = readsOf(q).Element()
	return s
}

// leading takes the path and the slice with which stages begin, and returns the stages after them.
func (s *Stream) leading(all []stage) []stage {
	for len(all) > 0 && len(all[0].term.SuffixList) == 1 {
		x := all[0].term.SuffixList[0]
		switch plain := s.From == 0 && s.To < 0; {
		case x.Optional: // nothing fails on the way to an array
		case x.Index == nil || !plain:
			return all
		default:
			name, isKey := keyOf(x.Index)
			from, to, isSlice := sliceOf(x.Index)
			switch {
			case isKey:
				s.Path = append(s.Path, name)
			case isSlice && (from > 0 || to >= 0):
				s.From, s.To = from, to
			default:
				return all
			}
		}
		all = all[1:]
	}
	return all
}

// strip returns a query without the path that leads to the array which it reads; nil if it needs the array.
func (s *Stream) strip(q *gojq.Query) *gojq.Query {
	all := s.leading(stagesIn(q))
	switch {
	case len(all) == 0:
		return nil
	case all[0].iterates():
		return joined(all)
	}
	head := s.stripHead(all[0].term)
	if head == nil {
		return nil
	}
	return rest(head, all[0], 0, all[1:])
}

// streaming maps functions that read an array once to the index of S among their arguments; -1: they read their input.
var streaming = map[string]int{
	"map/1": -1, "any/0": -1, "any/1": -1, "all/0": -1, "all/1": -1,
	"first/1": 0, "isempty/1": 0, "any/2": 0, "all/2": 0, "limit/2": 1,
}

// stripHead is strip for the first step of a query.
func (s *Stream) stripHead(t *gojq.Term) *gojq.Term {
	with := *t
	var of **gojq.Query
	switch t.Type {
	case gojq.TermTypeArray:
		with.Array = &gojq.Array{Query: t.Array.Query}
		of = &with.Array.Query
	case gojq.TermTypeReduce:
		r := *t.Reduce
		with.Reduce, of = &r, &r.Query
		if !new(inPlace).free(r.Start) {
			return nil
		}
	case gojq.TermTypeForeach:
		f := *t.Foreach
		with.Foreach, of = &f, &f.Query
		if !new(inPlace).free(f.Start) {
			return nil
		}
	case gojq.TermTypeFunc:
		i, ok := streaming[signature(t.Func)]
		if !ok {
			return nil
		}
		if i < 0 {
			return t
		}
		f := &gojq.Func{Name: t.Func.Name, Args: slices.Clone(t.Func.Args)}
		if _, literal := literalIndex(f.Args[0]); i > 0 && !literal {
			return nil
		}
		with.Func, of = f, &f.Args[i]
	default:
		return nil
	}
	if *of = s.strip(*of); *of == nil {
		return nil
	}
	return &with
}

// Whole reports whether the array is the record itself.
func (s *Stream) Whole() bool { return len(s.Path) == 0 }

// Once reports whether one reading of the record is enough.
func (s *Stream) Once() bool {
	return s.Whole() && s.Form != Folded && (s.Form != Flow || s.From == 0 && s.To < 0)
}

// Opens returns the opening bracket of the records that the stream applies to.
func (s *Stream) Opens() byte {
	if s.Whole() {
		return '['
	}
	return '{'
}
