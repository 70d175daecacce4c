package plan

import (
	"slices"
	"strconv"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// Fold says how a filter on an array is computed from one element after the other, in memory for the figures it asks
// for and not for the array.
//
// The filter is rewritten: each part that reads the array becomes an index into the values of tallies, and gojq runs
// what is left on these values. The filter group_by(.a) | map({a: .[0].a, n: length}) becomes
//
//	.[0] | map({a: .[0][0].a, n: .[1]})    on [groups], where a group is [its first element, its number of elements]
//
// The parts are length, add, min, max, unique, min_by, max_by, unique_by, indices and slices with literal bounds, the
// same after sort_by, and group_by with such parts on its groups; each also after map(f) and [.[] | f]. Another use of
// the array makes the filter one that needs the array.
type Fold struct {
	Tallies []Tally
	Direct  bool               // all filters of the tallies are direct, and no group keeps its last elements
	Ends    bool               // the tallies need no element for more than its place among the others
	Final   *Filter            // runs on the values of the tallies
	Reads   *decode.Projection // parts of an element that the tallies read
}

// Tally is a figure of an array.
type Tally struct {
	Kind Figure
	Each *Filter // gives the values of an element; nil: the element itself
	By   *Filter // gives the key of a value; nil: the value itself
	Part *Filter // gives the part of a value that is kept; nil: all of it
	N    int     // of Ends and Sorted: values that are kept, from the front, or if negative from the end
	Of   []Tally // of Groups: the figures of each group

	each, by, part *gojq.Query
}

// Figure is the kind of a tally.
type Figure int

const (
	Length Figure = iota // the number of values
	Sum                  // their sum, as add computes it
	Ends                 // the first or last values
	Sorted               // the same in the order of their keys
	Least                // the value that min_by gives
	Most                 // the value that max_by gives
	Unique               // the first value of each key, in the order of the keys
	Groups               // the figures of the values of each key, in the order of the keys
)

// maxEnds is how many values of an array a tally keeps, at most.
const maxEnds = 10_000

// fold returns the fold of a query, nil if it has none.
func (p *program) fold(q *gojq.Query) *Fold {
	if q == nil {
		return nil
	}
	root, r := &decode.Projection{}, &reads{}
	f := &Fold{}
	final := array{&f.Tallies, r, places{root}, nil}.body(q)
	if final == nil || len(f.Tallies) == 0 || p.compileTallies(f.Tallies) != nil {
		return nil
	}
	var err error
	if f.Final, err = p.compileFilter(final); err != nil {
		return nil
	}
	if r.places <= maxPlaces {
		f.Reads = root.Trim()
	}
	f.Direct = direct(f.Tallies, false)
	f.Ends = !slices.ContainsFunc(f.Tallies, func(t Tally) bool {
		return t.Each != nil || t.Kind != Ends && t.Kind != Length
	})
	return f
}

// foldedStream returns the path to an array in a record and the fold of the rest of the filter, nil if there is none.
func (p *program) foldedStream() (*Stream, *Fold) {
	s, rest := leading(p.query)
	if rest == nil || s.From != 0 || s.To >= 0 || len(p.query.FuncDefs) > 0 {
		return nil, nil
	}
	f := p.fold(rest.query())
	if f == nil {
		return nil, nil
	}
	s.Form = Folded
	return s, f
}

// compileTallies compiles the filters of tallies. It fails for a filter that uses a name from outside of it.
func (p *program) compileTallies(all []Tally) (err error) {
	for i := range all {
		t := &all[i]
		for to, q := range map[**Filter]*gojq.Query{&t.Each: t.each, &t.By: t.by, &t.Part: t.part} {
			if q != nil && err == nil {
				*to, err = p.compileFilter(q)
			}
		}
		if err == nil {
			err = p.compileTallies(t.Of)
		}
	}
	return err
}

func direct(all []Tally, ofGroup bool) bool {
	return !slices.ContainsFunc(all, func(t Tally) bool {
		keeps := ofGroup && t.Kind == Ends && t.N < 0 && t.Each == nil && t.Part == nil
		return keeps || !t.Each.Bounded() || !t.By.Bounded() || !t.Part.Bounded() || !direct(t.Of, true)
	})
}

// Keyed reports whether the tally needs the keys of its values.
func (t *Tally) Keyed() bool { return t.Kind >= Sorted }

// array is the array on which a part of a filter runs: the results of each for the elements, whose places are in.
type array struct {
	tallies *[]Tally
	reads   *reads
	in      places
	each    *gojq.Query // nil: the elements themselves
}

// tally adds a tally of the array and returns the query of its value.
func (a array) tally(t Tally) *gojq.Term {
	t.each = a.each
	values := a.reads.query(a.each, a.in)
	if t.by != nil {
		a.reads.query(t.by, values).whole()
	} else if t.Kind != Length && t.Kind != Ends && t.Kind != Groups {
		values.whole()
	}
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

// stage is a part of a pipe: a term without suffixes, or one suffix of a term.
type stage struct {
	term *gojq.Term
	tail []*gojq.Suffix // the suffixes of the same term that follow
}

// stagesIn divides a query at its pipes, brackets and suffixes; ok is false if it binds or defines names.
func stagesIn(q *gojq.Query) (all []stage, ok bool) {
	if q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0 || len(q.Patterns) > 0 {
		return nil, false
	}
	if q.Term == nil {
		if q.Op != gojq.OpPipe {
			return []stage{{term: &gojq.Term{Type: gojq.TermTypeQuery, Query: q}}}, true
		}
		left, ok := stagesIn(q.Left)
		right, both := stagesIn(q.Right)
		return append(left, right...), ok && both
	}
	t := q.Term
	if t.Type == gojq.TermTypeQuery && len(t.SuffixList) == 0 {
		return stagesIn(t.Query)
	}
	head := *t
	head.SuffixList = nil
	suffixes := t.SuffixList
	if head.Type == gojq.TermTypeIndex {
		suffixes = append([]*gojq.Suffix{{Index: head.Index}}, suffixes...)
	} else if head.Type != gojq.TermTypeIdentity {
		all = append(all, stage{&head, suffixes})
	}
	for i, s := range suffixes {
		all = append(all, stage{&gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{s}}, suffixes[i+1:]})
	}
	return all, closed(t)
}

// rest returns a query of t, which replaces the stage s and n of the suffixes after it, and of the stages that remain.
func rest(t *gojq.Term, s stage, n int, after []stage) *gojq.Query {
	with := *t
	with.SuffixList = slices.Concat(t.SuffixList, s.tail[n:])
	q := asQuery(&with)
	for i := len(s.tail); i < len(after); {
		next := *after[i].term
		next.SuffixList = slices.Concat(next.SuffixList, after[i].tail)
		q = piped(q, asQuery(&next))
		i += 1 + len(after[i].tail)
	}
	return q
}

// body rewrites a query on the array to one on the values of the tallies. It returns nil if the query needs the array.
func (a array) body(q *gojq.Query) *gojq.Query {
	all, ok := stagesIn(q)
	if !ok {
		return nil
	}
	return a.stages(all)
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
	case t.Type == gojq.TermTypeArray && t.Array.Query != nil:
		if s := elements(t.Array.Query); s != nil && s.wholeRecord() {
			return s.Each, true
		}
	}
	return nil, false
}

// figure returns the query of the figure with which a stage begins, and how many of the suffixes after it the query
// has done. The query is nil if there is no figure.
func (a array) figure(s stage) (*gojq.Term, int) {
	if n, ok := endsOf(s.term); ok {
		t, done := a.one(Tally{Kind: Ends, N: n}, s.tail, s.term.SuffixList[0].Index.IsSlice)
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
		inner := elements(f.Args[0])
		if inner == nil || !inner.wholeRecord() {
			return nil, 0
		}
		a.each = piped(a.each, inner.Each)
		return a.tally(Tally{Kind: Sum}), 0
	}
	kind, ok := figures[f.Name+"/"+strconv.Itoa(len(f.Args))]
	if !ok {
		return nil, 0
	}
	if len(f.Args) == 0 {
		return a.tally(Tally{Kind: kind}), 0
	}
	return a.one(Tally{Kind: kind, by: f.Args[0]}, s.tail, kind == Unique)
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
	a.reads.query(t.part, a.reads.query(a.each, a.in)).whole()
	return a.tally(t), n
}

var minusOne = &gojq.Term{
	Type: gojq.TermTypeUnary, Unary: &gojq.Unary{Op: gojq.OpSub, Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: "1"}},
}

// figures maps functions, with the number of their arguments, to the figures that they compute.
var figures = map[string]Figure{
	"length/0": Length, "add/0": Sum, "min/0": Least, "max/0": Most, "unique/0": Unique,
	"min_by/1": Least, "max_by/1": Most, "unique_by/1": Unique,
}

// endsOf returns how many values of an array an index or slice with literal bounds needs, from its front, or if
// negative from its end.
func endsOf(t *gojq.Term) (n int, ok bool) {
	if len(t.SuffixList) != 1 || t.SuffixList[0].Index == nil {
		return 0, false
	}
	x := t.SuffixList[0].Index
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
	a.reads.query(a.each, a.in).whole()
	term := a.tally(t)
	return rest(term, stage{}, 0, after)
}

func isStage(s stage, name string) bool {
	return s.term.Type == gojq.TermTypeFunc && isNamed(s.term.Func, name, 0)
}

// grouped rewrites the stages after group_by.
func (a array) grouped(by *gojq.Query, after []stage) *gojq.Query {
	of := &[]Tally{}
	inner := array{of, a.reads, a.reads.query(a.each, a.in), nil}
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
		if q == nil || !ok {
			return nil
		}
		b := a.body(q)
		ok = ok && b != nil
		return b
	}
	text := func(s *gojq.String) *gojq.String {
		if s == nil || s.Queries == nil {
			return s
		}
		with := &gojq.String{Str: s.Str, Queries: []*gojq.Query{}}
		for _, q := range s.Queries {
			if q.Term == nil || q.Term.Str == nil { // not one of the literal parts
				q = asQuery(&gojq.Term{Type: gojq.TermTypeQuery, Query: body(q)})
			}
			with.Queries = append(with.Queries, q)
		}
		return with
	}
	with := *t
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
	case gojq.TermTypeString, gojq.TermTypeFormat:
		with.Str = text(t.Str)
		ok = ok && t.Str != nil
	case gojq.TermTypeArray:
		with.Array = &gojq.Array{Query: body(t.Array.Query)}
	case gojq.TermTypeQuery: // of an operator
		q := *t.Query
		if q.Op == gojq.OpPipe || q.Op >= gojq.OpAssign {
			return nil
		}
		q.Left, q.Right = body(q.Left), body(q.Right)
		with.Query = &q
	case gojq.TermTypeUnary:
		inner := body(asQuery(t.Unary.Term))
		if !ok {
			return nil
		}
		with.Unary = &gojq.Unary{Op: t.Unary.Op, Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: inner}}
	case gojq.TermTypeIf:
		i := &gojq.If{Cond: body(t.If.Cond), Then: body(t.If.Then), Else: body(t.If.Else)}
		for _, e := range t.If.Elif {
			i.Elif = append(i.Elif, &gojq.IfElif{Cond: body(e.Cond), Then: body(e.Then)})
		}
		ok = ok && t.If.Else != nil
		with.If = i
	case gojq.TermTypeObject:
		with.Object = &gojq.Object{}
		for _, kv := range t.Object.KeyVals {
			ok = ok && kv.Val != nil
			with.Object.KeyVals = append(with.Object.KeyVals, &gojq.ObjectKeyVal{
				Key: kv.Key, KeyString: text(kv.KeyString), KeyQuery: body(kv.KeyQuery), Val: body(kv.Val),
			})
		}
	default:
		return nil
	}
	if !ok {
		return nil
	}
	return &with
}
