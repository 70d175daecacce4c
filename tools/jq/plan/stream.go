package plan

import (
	"cmp"

	"github.com/itchyny/gojq"
)

// Stream says how a filter runs on one element of an array after the other.
//
// Let S be the elements of an array of the record: .[], .key[], .a.b[] or .[i:j][] with literal i and j ≥ 0, each
// followed by anything that sees only one element (.[].x, .[] | f). These filters run element by element, in memory for
// one element and the results, not for the array:
//
//	S                            each result is emitted at once
//	first(S), limit(n; S)        n literal, above 0
//	[S], map(f), .[i:j]          the text of the result array is held
//	[S] | length, map(f) | length, length, .[i:j] | length, .key | length
//	.[n], .key[n], first         and what follows them, with literal n ≥ 0
//
// with map(f) for [.[] | f], limit(n; S) and first(S) for S within [ ], and .key | before any of them.
// So do filters on an array with a [Fold]. All others need the whole record: those that need all elements at once
// (sort_by without a slice, reduce), name the array (. as $all) or define functions. S alone may define functions: it
// needs only syntax, which nobody can redefine.
//
// All but S hold their results until the end of the record, as gojq does: if the record is not JSON there are none. S
// of a key or of a slice needs a first reading, to see that the record is JSON and which duplicate key counts; if the
// text cannot be read twice, the record is decoded whole. So it is for a fold, which may have to begin again.
type Stream struct {
	Path     []string    // keys that lead to the array
	From, To int64       // range of elements; To -1: up to the last
	Each     *gojq.Query // runs on each element; nil: .
	Most     int64       // maximum of results; -1: all
	Form     Form
}

// Form says how the results of the elements become results of the filter.
type Form int

const (
	Flow   Form = iota // each result of an element is a result
	Gather             // one array of all results is the result
	Count              // the number of results is the result
	Item               // the results of one element are the results; a missing element is null
	Folded             // the fold of the plan computes the results
)

// streamOf returns the stream of a query, nil if the query needs the whole record.
func streamOf(q *gojq.Query) *Stream {
	if q.Meta != nil || len(q.Imports) > 0 {
		return nil
	}
	defined := q.FuncDefs
	bare := *q
	bare.FuncDefs = nil
	for _, way := range []func(*gojq.Query) *Stream{elements, counted, collected, limited, one} {
		if s := way(&bare); s != nil {
			if len(defined) > 0 && (s.Form != Flow || s.Most >= 0) {
				return nil
			}
			if s.Each != nil && len(defined) > 0 {
				with := *s.Each
				with.FuncDefs = append(defined[:len(defined):len(defined)], with.FuncDefs...)
				s.Each = &with
			}
			return s
		}
	}
	return nil
}

// elements returns the stream of a filter such as .rows[]; nil if q is another filter. So do the functions below, each
// for its own form.
func elements(q *gojq.Query) *Stream {
	s, rest := leading(q)
	if s == nil || rest == nil || rest.term == nil || !rest.iterates() {
		return nil
	}
	rest.next()
	s.Each = rest.query()
	return s
}

// limited returns the stream of first(S) or limit(n; S).
func limited(q *gojq.Query) *Stream {
	most, ok := int64(1), isCall(q, "first", 1)
	if isCall(q, "limit", 2) {
		most, ok = literalIndex(q.Term.Func.Args[0])
	}
	if !ok || most < 1 {
		return nil
	}
	s := elements(q.Term.Func.Args[len(q.Term.Func.Args)-1])
	if s != nil {
		s.Most = most
	}
	return s
}

// collected returns the stream of a query whose result is one array: [S], map(f) or .[i:j], after a path.
func collected(q *gojq.Query) *Stream {
	if isPlain(q, gojq.TermTypeArray) && q.Term.Array.Query != nil {
		s := cmp.Or(elements(q.Term.Array.Query), limited(q.Term.Array.Query))
		if s != nil {
			s.Form = Gather
		}
		return s
	}
	s, rest := leading(q)
	if s == nil {
		return nil
	}
	s.Form = Gather
	if rest == nil {
		if s.From == 0 && s.To < 0 { // the array as it is
			return nil
		}
		return s
	}
	if q = rest.query(); !isCall(q, "map", 1) {
		return nil
	}
	s.Each = q.Term.Func.Args[0]
	return s
}

// counted returns the stream of length after a path or a query that collected accepts.
func counted(q *gojq.Query) *Stream {
	if isCall(q, "length", 0) {
		return &Stream{To: -1, Most: -1, Form: Count}
	}
	if q.Term != nil || q.Op != gojq.OpPipe || len(q.Patterns) > 0 {
		return nil
	}
	first, last := q.Left, q.Right
	for last.Term == nil { // a | (b | length)
		if last.Op != gojq.OpPipe || len(last.Patterns) > 0 || len(last.FuncDefs) > 0 {
			return nil
		}
		first, last = piped(first, last.Left), last.Right
	}
	if !isCall(last, "length", 0) {
		return nil
	}
	s := collected(first)
	if s == nil {
		var rest *steps
		if s, rest = leading(first); s == nil || rest != nil {
			return nil
		}
	}
	s.Form = Count
	return s
}

// one returns the stream of .[n] and the filter after it.
func one(q *gojq.Query) *Stream {
	if isCall(q, "first", 0) {
		return &Stream{To: 1, Most: -1, Form: Item}
	}
	s, rest := leading(q)
	if s == nil || rest == nil || rest.term == nil || s.From != 0 || s.To >= 0 {
		return nil
	}
	x := rest.index()
	if x == nil || x.IsSlice {
		return nil
	}
	n, ok := literalIndex(x.Start)
	if !ok {
		return nil
	}
	rest.next()
	s.From, s.To, s.Form, s.Each = n, n+1, Item, rest.query()
	return s
}

// leading returns a stream with the path and the slice with which a query begins, and the steps after them, nil if
// there are none.
func leading(q *gojq.Query) (*Stream, *steps) {
	s := &Stream{To: -1, Most: -1}
	rest := stepsOf(q)
	if rest == nil {
		return nil, nil
	}
	for rest.term != nil {
		x := rest.index()
		if x == nil {
			break
		}
		if name, ok := keyOf(x); ok && s.From == 0 && s.To < 0 {
			s.Path = append(s.Path, name)
		} else if from, to, ok := sliceOf(x); ok && s.From == 0 && s.To < 0 && (from > 0 || to >= 0) {
			s.From, s.To = from, to
		} else {
			break
		}
		if !rest.next() {
			return s, nil
		}
	}
	if rest.identity() {
		return s, nil
	}
	return s, rest
}

// wholeRecord reports whether the array is the record and the stream has all of its elements.
func (p *Stream) wholeRecord() bool { return p.Path == nil && p.From == 0 && p.To < 0 }

// Opens returns the opening bracket of the records that the stream applies to.
func (p *Stream) Opens() byte {
	if len(p.Path) > 0 {
		return '{'
	}
	return '['
}

// Flows reports whether results are emitted at once.
func (p *Stream) Flows() bool { return p.Form == Flow && p.Most < 0 }
