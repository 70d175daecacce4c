package jq

import (
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// # Which filters run on one element of an array after the other
//
// Let S be the elements of an array of the record: .[], .key[], .a.b[], .[i:j][]
// (i and j literal and not negative), each with more after it (.[].x, .[] | f), which sees one element and
// nothing else. Then these are run element by element, in memory that depends
// on an element and on the results, not on the array:
//
//	S                            each result goes out as it comes
//	first(S), limit(n; S)        n literal, above 0
//	[S], map(f), .[i:j]          the text of the array of the results is held
//	[S] | length, map(f) | length, length, .[i:j] | length, .key | length
//	.[n], .key[n], first         and what comes after them, with n literal and not negative
//
// with map(f) for [.[] | f], limit(n; S) and first(S) for S within [ ], and .key | before any of them.
// Everything else is materialised: what orders, groups or compares elements (sort_by, group_by, unique, add,
// reduce), what counts from the end, what names the array (. as $all), and whatever
// defines functions, but for S alone, which needs only syntax and so cannot be redefined.
//
// A text that is no such array is run on as ever. All but S wait for the end of the record with
// their results, as gojq would: where the record turns out not to be JSON there are none. S of a key or of a slice is
// run when the record is known to be JSON, and which of its keys count: on a text that can be read twice, else it is materialised.
type plan struct {
	path     []string    // keys that lead to the array
	from, to int64       // elements that are looked at; to -1: to the last
	each     *gojq.Query // on each of them; nil: itself
	most     int64       // results at most; -1: all
	form     form
}

type form int

const (
	flow   form = iota // each result is one
	gather             // all of them are one array
	count              // their number is the result
	item               // the results of one element, which is null where there is none
)

// planOf finds the plan of a program; nil: it needs all of a record at once.
func planOf(p *program) *plan {
	q := p.query
	if q.Meta != nil || len(q.Imports) > 0 {
		return nil
	}
	defined := q.FuncDefs
	bare := *q
	bare.FuncDefs = nil
	for _, way := range []func(*gojq.Query) *plan{elements, counted, collected, limited, one} {
		if s := way(&bare); s != nil {
			if len(defined) > 0 && (s.form != flow || s.most >= 0) {
				return nil
			}
			if s.each != nil && len(defined) > 0 {
				with := *s.each
				with.FuncDefs = append(defined[:len(defined):len(defined)], with.FuncDefs...)
				s.each = &with
			}
			return s
		}
	}
	return nil
}

// elements is S.
func elements(q *gojq.Query) *plan {
	s, rest := leading(q)
	if s == nil || rest == nil || rest.term == nil || !rest.iterates() {
		return nil
	}
	rest.next()
	s.each = rest.query()
	return s
}

// limited is first(S) or limit(n; S).
func limited(q *gojq.Query) *plan {
	f := called(q)
	if f == nil {
		return nil
	}
	switch {
	case f.Name == "first" && len(f.Args) == 1:
		s := elements(f.Args[0])
		if s != nil {
			s.most = 1
		}
		return s
	case f.Name == "limit" && len(f.Args) == 2:
		s := elements(f.Args[1])
		n, ok := literalIndex(f.Args[0])
		if s == nil || !ok || n < 1 {
			return nil
		}
		s.most = n
		return s
	}
	return nil
}

// collected is what makes one array: [S], map(f) and .[i:j], after a path.
func collected(q *gojq.Query) *plan {
	if t := plainTerm(q); t != nil && t.Type == gojq.TermTypeArray && t.Array.Query != nil {
		s := elements(t.Array.Query)
		if s == nil {
			s = limited(t.Array.Query)
		}
		if s != nil {
			s.form = gather
		}
		return s
	}
	s, rest := leading(q)
	if s == nil {
		return nil
	}
	s.form = gather
	if rest == nil {
		if s.from == 0 && s.to < 0 { // the array as it is
			return nil
		}
		return s
	}
	f := called(rest.query())
	if f == nil || f.Name != "map" || len(f.Args) != 1 {
		return nil
	}
	s.each = f.Args[0]
	return s
}

// counted is one of those, or a path, and then length.
func counted(q *gojq.Query) *plan {
	if isLength(q) {
		return &plan{to: -1, most: -1, form: count}
	}
	if q.Term != nil || q.Op != gojq.OpPipe || len(q.Patterns) > 0 {
		return nil
	}
	first, last := q.Left, q.Right
	for last.Term == nil { // a | (b | length)
		if last.Op != gojq.OpPipe || len(last.Patterns) > 0 || len(last.FuncDefs) > 0 {
			return nil
		}
		first, last = &gojq.Query{Left: first, Op: gojq.OpPipe, Right: last.Left}, last.Right
	}
	if !isLength(last) {
		return nil
	}
	s := collected(first)
	if s == nil {
		var rest *steps
		if s, rest = leading(first); s == nil || rest != nil {
			return nil
		}
	}
	s.form = count
	return s
}

// one is .[n] and what comes after it.
func one(q *gojq.Query) *plan {
	if f := called(q); f != nil && f.Name == "first" && len(f.Args) == 0 {
		return &plan{to: 1, most: -1, form: item}
	}
	s, rest := leading(q)
	if s == nil || rest == nil || rest.term == nil || s.from != 0 || s.to >= 0 {
		return nil
	}
	x := rest.at()
	if x == nil || x.IsSlice {
		return nil
	}
	n, ok := literalIndex(x.Start)
	if !ok {
		return nil
	}
	rest.next()
	s.from, s.to, s.form, s.each = n, n+1, item, rest.query()
	return s
}

func isLength(q *gojq.Query) bool {
	f := called(q)
	return f != nil && f.Name == "length" && len(f.Args) == 0
}

// called is the function that is all of q.
func called(q *gojq.Query) *gojq.Func {
	if t := plainTerm(q); t != nil && t.Type == gojq.TermTypeFunc {
		return t.Func
	}
	return nil
}

// plainTerm is the term that is all of q, without suffixes.
func plainTerm(q *gojq.Query) *gojq.Term {
	if q == nil || q.Term == nil || len(q.FuncDefs) > 0 || len(q.Term.SuffixList) > 0 {
		return nil
	}
	return q.Term
}

// leading takes the path and the slice a query begins with, and gives what comes after them; nil: nothing.
func leading(q *gojq.Query) (*plan, *steps) {
	s := &plan{to: -1, most: -1}
	rest := stepsOf(q)
	if rest == nil {
		return nil, nil
	}
	for rest.term != nil {
		x := rest.at()
		if x == nil {
			break
		}
		if name, ok := keyOf(x); ok && s.from == 0 && s.to < 0 {
			s.path = append(s.path, name)
		} else if from, to, ok := sliceOf(x); ok && s.from == 0 && s.to < 0 && (from > 0 || to >= 0) {
			s.from, s.to = from, to
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

func keyOf(x *gojq.Index) (string, bool) {
	switch {
	case x.Name != "":
		return x.Name, true
	case x.Str != nil:
		return x.Str.Str, x.Str.Queries == nil
	case x.IsSlice:
		return "", false
	}
	return literal(x.Start)
}

func sliceOf(x *gojq.Index) (from, to int64, ok bool) {
	to = -1
	if !x.IsSlice {
		return 0, 0, false
	}
	for _, end := range []struct {
		q  *gojq.Query
		at *int64
	}{{x.Start, &from}, {x.End, &to}} {
		if end.q == nil {
			continue
		}
		n, ok := literalIndex(end.q)
		if !ok {
			return 0, 0, false
		}
		*end.at = n
	}
	return from, to, true
}

// literalIndex is the value of a literal whole number that is not negative.
func literalIndex(q *gojq.Query) (int64, bool) {
	t := plainTerm(q)
	if t == nil || t.Type != gojq.TermTypeNumber {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(t.Number), 10, 32)
	return n, err == nil && n >= 0
}
