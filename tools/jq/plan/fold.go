package plan

import (
	"strconv"

	"github.com/itchyny/gojq"
)

// # Folds
//
// A filter that asks for figures of an array is computed from one element after the other, in memory for the figures.
// It is rewritten: each part that reads the array becomes an index into the values of tallies, and gojq runs what is
// left on these values. The filter group_by(.a) | map({a: .[0].a, n: length}) becomes
//
//	.[0] | map({a: .[0].a, n: .[1]})    on [groups], where a group is [its first element, its number of elements]
//
// The parts are length, add, min, max, unique, min_by, max_by, unique_by, indices and slices with literal bounds, the
// same after sort_by, and group_by with such parts on its groups; each also after map(f) and [.[] | f]. Another use of
// the array makes the filter one that needs the array. gojq also computes what the tallies need of an element: a row
// with a list for each tally, of values, or of [key, value] if the tally has keys.

// Tally is a figure of an array.
type Tally struct {
	Kind Figure
	N    int     // of Nth: the index; of Ends and Sorted: how many are kept, from the front, or if negative from the end
	Of   []Tally // of Groups: the figures of each group

	each, by, part *gojq.Query // the values of an element, the key of a value, the part of it that is kept; nil: all
}

// Figure is the kind of a tally.
type Figure int

// The figures.
const (
	Length Figure = iota // the number of values
	Sum                  // their sum, as add computes it
	Nth                  // the value at an index
	Ends                 // the first or last values
	Sorted               // the same in the order of their keys
	Least                // the value that min_by gives
	Most                 // the value that max_by gives
	Groups               // the figures of the values of each key, in the order of the keys
)

// maxEnds is how many values of an array a tally keeps, at most.
const maxEnds = 10_000

// fold returns the stream of a query on an array, which all divides, if it has a fold.
func (p *program) fold(s Stream, all []stage) *Stream {
	final := array{&s.Tallies, nil}.stages(all)
	if final == nil || len(s.Tallies) == 0 {
		return nil
	}
	var err error
	if s.Final, err = p.compile(final); err != nil {
		return nil
	}
	s.Form = Folded
	return p.compileStream(&s, piped(asQuery(iterated()), asQuery(row(s.Tallies))))
}

// Keyed reports whether the tally needs the keys of its values.
func (t *Tally) Keyed() bool { return t.Kind >= Sorted }

// row returns the query of what tallies need of an element.
func row(all []Tally) *gojq.Term {
	var cells *gojq.Query
	for _, t := range all {
		value := asQuery(&gojq.Term{Type: gojq.TermTypeIdentity})
		switch {
		case t.Kind == Length:
			value = asQuery(&gojq.Term{Type: gojq.TermTypeNull})
		case t.Kind == Groups:
			value = asQuery(row(t.Of))
		case t.part != nil:
			value = t.part
		}
		if t.Keyed() {
			key := t.by
			if key == nil {
				key = asQuery(&gojq.Term{Type: gojq.TermTypeIdentity})
			}
			value = asQuery(list(comma(asQuery(list(key)), value)))
		}
		if t.each != nil {
			value = piped(asQuery(bracketed(t.each)), value)
		}
		cells = comma(cells, asQuery(list(value)))
	}
	return list(cells)
}

// list returns [q].
func list(q *gojq.Query) *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: q}}
}

// comma joins two queries by a comma; the first may be nil.
func comma(l, r *gojq.Query) *gojq.Query {
	if l == nil {
		return r
	}
	return &gojq.Query{Left: l, Op: gojq.OpComma, Right: r}
}

// array is the array on which a part of a filter runs: the results of each for the elements.
type array struct {
	tallies *[]Tally
	each    *gojq.Query // nil: the elements themselves
}

// tally adds a tally of the array and returns the query of its value.
func (a array) tally(t Tally) *gojq.Term {
	t.each = a.each
	*a.tallies = append(*a.tallies, t)
	return &gojq.Term{Type: gojq.TermTypeIndex, Index: indexOf(len(*a.tallies) - 1)}
}

func indexOf(i int) *gojq.Index {
	return &gojq.Index{Start: asQuery(&gojq.Term{Type: gojq.TermTypeNumber, Number: strconv.Itoa(i)})}
}

func asQuery(t *gojq.Term) *gojq.Query { return &gojq.Query{Term: t} }

// piped joins two queries by a pipe. A nil query is the identity.
func piped(l, r *gojq.Query) *gojq.Query {
	switch {
	case l == nil:
		return r
	case r == nil:
		return l
	}
	return &gojq.Query{Left: l, Op: gojq.OpPipe, Right: r}
}

// body rewrites a query on the array to one on the values of the tallies. It returns nil if the query needs the array.
func (a array) body(q *gojq.Query) *gojq.Query {
	return a.stages(stagesIn(q))
}

func (a array) stages(all []stage) *gojq.Query {
	if len(all) == 0 { // the array itself
		return nil
	}
	s, after := all[0], all[1:]
	if each, ok := mapped(s.term); ok {
		a.each = piped(a.each, each)
		before := len(*a.tallies)
		q := a.stages(after)
		if q != nil && len(*a.tallies) == before { // each may still fail
			a.tally(Tally{Kind: Length})
		}
		return q
	}
	if f := s.term.Func; s.term.Type == gojq.TermTypeFunc {
		switch {
		case isNamed(f, "select", 1):
			test, next := a.body(f.Args[0]), a.stages(after)
			if test == nil || next == nil {
				return nil
			}
			return piped(call("select", test), next)
		case isNamed(f, "group_by", 1):
			return a.grouped(f.Args[0], after)
		case isNamed(f, "sort_by", 1), isNamed(f, "sort", 0):
			return a.sorted(f, after)
		}
	}
	if t, n := a.figure(s); t != nil {
		return rest(t, s, n, after)
	}
	if t := a.rebuilt(s.term); t != nil {
		return rest(t, s, 0, after)
	}
	return nil
}

func call(name string, args ...*gojq.Query) *gojq.Query {
	return asQuery(&gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}})
}

// mapped returns f of map(f), [.[] | f] and [.[]…].
func mapped(t *gojq.Term) (each *gojq.Query, ok bool) {
	switch {
	case t.Type == gojq.TermTypeFunc && isNamed(t.Func, "map", 1):
		return t.Func.Args[0], true
	case t.Type == gojq.TermTypeArray:
		return iteration(t.Array.Query)
	}
	return nil, false
}

// iteration returns f of .[] | f and .[]….
func iteration(q *gojq.Query) (each *gojq.Query, ok bool) {
	all := stagesIn(q)
	if len(all) == 0 || !all[0].iterates() {
		return nil, false
	}
	if all = all[1:]; len(all) > 0 && all[0].term.SuffixList != nil && all[0].term.SuffixList[0].Optional {
		all = all[1:] // nothing fails at an array
	}
	return joined(all), true
}

// figure returns the query of the figure with which a stage begins, and how many of the suffixes after it the query
// has done. The query is nil if there is no figure.
func (a array) figure(s stage) (*gojq.Term, int) {
	if x := onlyIndex(s.term); x != nil {
		if i, ok := literalIndex(x.Start); ok && !x.IsSlice {
			return a.one(Tally{Kind: Nth, N: int(i)}, s.tail, false)
		}
		n, ok := endsOf(s.term)
		if !ok {
			return nil, 0
		}
		t, done := a.one(Tally{Kind: Ends, N: n}, s.tail, x.IsSlice)
		t.SuffixList = s.term.SuffixList
		return t, done
	}
	f := s.term.Func
	switch {
	case s.term.Type != gojq.TermTypeFunc:
		return nil, 0
	case isNamed(f, "first", 0):
		return a.figure(stage{&gojq.Term{SuffixList: []*gojq.Suffix{{Index: indexOf(0)}}}, s.tail})
	case isNamed(f, "last", 0):
		end := &gojq.Index{Start: asQuery(minusOne)}
		return a.figure(stage{&gojq.Term{SuffixList: []*gojq.Suffix{{Index: end}}}, s.tail})
	case isNamed(f, "add", 1):
		each, ok := iteration(f.Args[0])
		if !ok {
			return nil, 0
		}
		a.each = piped(a.each, each)
		return a.tally(Tally{Kind: Sum}), 0
	}
	kind, ok := figures[signature(f)]
	if !ok {
		return nil, 0
	}
	t := Tally{Kind: kind}
	if len(f.Args) > 0 {
		t.by = f.Args[0]
	}
	switch kind {
	case Length, Sum:
		return a.tally(t), 0
	case Groups: // the first value of each
		t.Of = []Tally{{Kind: Nth}}
		first := asQuery(&gojq.Term{Type: gojq.TermTypeIndex, Index: indexOf(0)})
		return bracketed(piped(asQuery(a.tally(t)), call("map", first))), 0
	}
	return a.one(t, s.tail, false)
}

// one adds a tally that keeps values. Of a single value it keeps only the part that the names in the suffixes after it
// select, and it returns the number of these suffixes.
func (a array) one(t Tally, after []*gojq.Suffix, several bool) (*gojq.Term, int) {
	n := 0
	for !several && n < len(after) && after[n].Index != nil {
		if _, ok := keyOf(after[n].Index); !ok {
			break
		}
		n++
	}
	if n > 0 {
		t.part = asQuery(&gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: after[:n]})
	}
	return a.tally(t), n
}

var minusOne = &gojq.Term{
	Type: gojq.TermTypeUnary, Unary: &gojq.Unary{Op: gojq.OpSub, Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: "1"}},
}

// figures maps functions, with the number of their arguments, to the figures that they compute.
var figures = map[string]Figure{
	"length/0": Length, "add/0": Sum, "min/0": Least, "max/0": Most, "unique/0": Groups,
	"min_by/1": Least, "max_by/1": Most, "unique_by/1": Groups,
}

// onlyIndex returns the index of a stage that is one, else nil.
func onlyIndex(t *gojq.Term) *gojq.Index {
	if len(t.SuffixList) != 1 {
		return nil
	}
	return t.SuffixList[0].Index
}

// endsOf returns how many values of an array an index or slice with literal bounds needs, from its front, or if
// negative from its end.
func endsOf(t *gojq.Term) (n int, ok bool) {
	x := onlyIndex(t)
	if x == nil {
		return 0, false
	}
	from, hasFrom := signedIndex(x.Start)
	to, hasTo := signedIndex(x.End)
	switch {
	case x.Name != "" || x.Str != nil:
		return 0, false
	case !x.IsSlice && hasFrom && from >= 0:
		n = from + 1
	case !x.IsSlice && hasFrom:
		n = from
	case x.IsSlice && hasTo && to > 0 && (x.Start == nil || hasFrom && from >= 0):
		n = to
	case x.IsSlice && hasFrom && from < 0 && (x.End == nil || hasTo && to < 0):
		n = from
	default:
		return 0, false
	}
	return n, -maxEnds <= n && n <= maxEnds
}

// signedIndex returns the value of a literal whole number, perhaps with a minus.
func signedIndex(q *gojq.Query) (int, bool) {
	if n, ok := literalIndex(q); ok {
		return int(n), true
	}
	if !isPlain(q, gojq.TermTypeUnary) || q.Term.Unary.Op != gojq.OpSub {
		return 0, false
	}
	n, ok := literalIndex(asQuery(q.Term.Unary.Term))
	return -int(n), ok
}

// sorted rewrites the stages after sort_by or sort, which must take a few values from one end.
func (a array) sorted(f *gojq.Func, after []stage) *gojq.Query {
	t := Tally{Kind: Sorted}
	if len(f.Args) > 0 {
		t.by = f.Args[0]
	}
	next, turned := after, 1
	if len(next) > 0 && isStage(next[0], "reverse") {
		next, turned = next[1:], -1
	}
	if len(next) == 0 {
		return nil
	}
	var ok bool
	switch {
	case isStage(next[0], "first"):
		t.N, ok = 1, true
	case isStage(next[0], "last"):
		t.N, ok = -1, true
	default:
		t.N, ok = endsOf(next[0].term)
	}
	if !ok {
		return nil
	}
	t.N *= turned
	term := a.tally(t)
	return rest(term, stage{}, 0, after)
}

func isStage(s stage, name string) bool {
	return s.term.Type == gojq.TermTypeFunc && isNamed(s.term.Func, name, 0)
}

// grouped rewrites the stages after group_by.
func (a array) grouped(by *gojq.Query, after []stage) *gojq.Query {
	of := &[]Tally{}
	inner := array{of, nil}
	all := a.tally(Tally{Kind: Groups, by: by})
	at := len(*a.tallies) - 1
	q := inner.groups(asQuery(all), after)
	(*a.tallies)[at].Of = *of
	return q
}

// groups rewrites stages on an array of groups, which q gives.
func (a array) groups(q *gojq.Query, all []stage) *gojq.Query {
	if len(all) == 0 {
		return nil
	}
	s, after := all[0], all[1:]
	if each, ok := mapped(s.term); ok && each != nil {
		if isCall(each, "select", 1) { // gives groups
			return a.kept(q, "map", true, each.Term.Func.Args[0], after)
		}
		body := a.body(each)
		if body == nil {
			return nil
		}
		return piped(q, rest(call("map", body).Term, s, 0, after))
	}
	if len(s.term.SuffixList) == 1 {
		switch x := s.term.SuffixList[0]; {
		case x.Iter:
			body := a.stages(after)
			if body == nil {
				return nil
			}
			return piped(piped(q, asQuery(s.term)), body)
		case x.Index != nil && x.Index.IsSlice:
			return a.groups(piped(q, asQuery(s.term)), after)
		}
		return nil
	}
	switch f := s.term.Func; {
	case s.term.Type != gojq.TermTypeFunc:
	case isNamed(f, "length", 0):
		return piped(q, rest(s.term, s, 0, after))
	case isNamed(f, "reverse", 0):
		return a.groups(piped(q, asQuery(s.term)), after)
	case isNamed(f, "sort_by", 1):
		return a.kept(q, "sort_by", false, f.Args[0], after)
	}
	return nil
}

// kept rewrites the stages after one that gives some of the groups: sort_by(of) or map(select(of)).
func (a array) kept(q *gojq.Query, name string, selects bool, of *gojq.Query, after []stage) *gojq.Query {
	arg := a.body(of)
	if arg == nil {
		return nil
	}
	if selects {
		arg = call("select", arg)
	}
	return a.groups(piped(q, call(name, arg)), after)
}

// rebuilt rewrites the queries in a term that makes a value, such as an object or a text. It returns nil if one of them
// needs the array.
func (a array) rebuilt(t *gojq.Term) *gojq.Term {
	ok := true
	body := func(q *gojq.Query) *gojq.Query {
		b := a.body(q)
		ok = ok && b != nil
		return b
	}
	var with *gojq.Term
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeArray,
		gojq.TermTypeString, gojq.TermTypeFormat, gojq.TermTypeUnary, gojq.TermTypeIf, gojq.TermTypeObject:
		if t.Type == gojq.TermTypeFormat && t.Str == nil || t.Type == gojq.TermTypeIf && t.If.Else == nil {
			return nil
		}
		with = withParts(t, body)
	case gojq.TermTypeQuery: // of an operator
		q := *t.Query
		if q.Term != nil || len(q.FuncDefs) > 0 || q.Op == gojq.OpPipe || q.Op >= gojq.OpAssign {
			return nil
		}
		q.Left, q.Right = body(q.Left), body(q.Right)
		with = bracketed(&q)
	default:
		return nil
	}
	if !ok {
		return nil
	}
	return with
}
