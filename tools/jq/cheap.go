package jq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp/syntax"
	"strconv"

	"github.com/itchyny/gojq"
)

// # Which filters run in this process
//
// gojq can take all memory at once, overflow the stack, and be deaf to
// cancellation inside one built-in. So a filter runs in a worker unless it is
// shown beforehand that it cannot be dear: the text is small (smallText), and
// a bound on its work and on the size of everything it makes, computed over
// its syntax tree, stays below maxWork and maxWeight.
//
// The bound is computed with numbers, not with orders of growth. What flows
// into a part of the filter is a bag: at most count values, of weight bytes
// altogether, none over largest bytes. Each construct has a rule that turns the
// bag that flows in into a bag that surely holds what flows out. Constructs
// without a rule are refused: recursion and loops (def, reduce, foreach, while,
// until, repeat, recurse, .., walk, label), patterns of several names, products of several results,
// multiplication of unknowns ("a" * 1e9), indices to write at, regular
// expressions but for tests by a short literal one, time formats, and what nobody needed yet.
//
// Weight is what Marshal would write, without the escapes in strings: 4 for
// null, 5 for false, the digits of a number, a string's bytes and 2, a byte
// for each bracket, comma and colon. A value in memory is at most 30 times that, a row at most 6 times.
//
// So a filter in this process holds at most 64 MiB; the dearest of 800 that were made to be dear, on texts made
// for them, took 14 MiB and less than a second of a busy machine (TestCheapIsCheap).
const (
	smallText = 64 << 10
	maxWeight = 2 << 20
	maxWork   = 64 << 20 // steps of a few to a hundred nanoseconds
	maxNodes  = 500
	maxDepth  = 60
)

// digits bounds what arithmetic writes for a number that is not a big integer.
const digits = 25

// bag bounds what flows between two parts of a filter.
type bag struct {
	count, weight, largest float64
	single                 bool // at most one value for each that flowed in
}

// meter walks a filter and adds up its work.
type meter struct {
	work         float64
	nodes, depth int
	vars         map[string]variable
	name         float64 // weight of input_filename
	refused      string  // why, for tests and for the curious
}

type variable struct {
	size   float64
	scalar bool
}

// cheap says whether a program may run in this process on a text, which must
// be valid UTF-8: what is put in place of a bad byte is larger. If not, why.
func (p *program) cheap(text []byte, how job) (bool, string) {
	if len(text) > smallText {
		return false, "the text is not small"
	}
	n := float64(len(text))
	in := bag{weight: n + 1, largest: n + 1}
	switch {
	case how.Slurp && how.Text:
		in = bag{count: 1, weight: n + 2, largest: n + 2}
	case how.Slurp:
		in = bag{count: 1, weight: 2*n + 2, largest: 2*n + 2}
	case how.Text:
		in.count = float64(bytes.Count(text, []byte{'\n'}) + 1)
		in.weight, in.largest = n+2*in.count, n+2
	default:
		d := newDecoder(bytes.NewReader(text))
		for ; d.d.SkipValue() == nil; in.count++ {
		}
	}
	_, ok, why := p.bound(p.query, in)
	return ok, why
}

// bound is the bag that flows out of a query of a program, where it is cheap.
func (p *program) bound(q *gojq.Query, in bag) (bag, bool, string) {
	if q.Meta != nil || len(q.Imports) > 0 {
		return bag{}, false, "modules"
	}
	m := &meter{vars: map[string]variable{}, name: float64(len(p.name) + 2)}
	for i, name := range p.names {
		m.vars[name] = variable{weigh(p.values[i]), scalar(p.values[i])}
	}
	m.vars["$ENV"] = variable{2, false}
	out := m.query(q, in)
	m.check(out)
	return out, m.refused == "", m.refused
}

// weigh is the weight of a value.
func weigh(v any) float64 {
	switch v := v.(type) {
	case nil:
		return 4
	case bool:
		if v {
			return 4
		}
		return 5
	case int:
		return float64(len(strconv.Itoa(v)))
	case json.Number:
		return float64(len(v))
	case *big.Int:
		return float64(len(v.String()))
	case float64:
		return digits
	case string:
		return float64(len(v) + 2)
	case []any:
		w := 2 + float64(max(len(v)-1, 0))
		for _, x := range v {
			w += weigh(x)
		}
		return w
	case map[string]any:
		w := 2 + float64(max(len(v)-1, 0))
		for k, x := range v {
			w += weigh(x) + float64(len(k)+3)
		}
		return w
	default:
		return math.Inf(1)
	}
}

func scalar(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	default:
		return true
	}
}

func (m *meter) refuse(why string, a ...any) bag {
	if m.refused == "" {
		m.refused = fmt.Sprintf(why, a...)
	}
	return bag{single: true}
}

// check refuses what has grown too large, so that no rule computes on.
func (m *meter) check(b bag) bag {
	if b.weight > maxWeight || b.count > maxWeight {
		return m.refuse("may make %.0f bytes", max(b.weight, b.count))
	}
	if m.work > maxWork {
		return m.refuse("may take %.0f steps", m.work)
	}
	return b
}

// query applies the rule of a query to what flows in.
func (m *meter) query(q *gojq.Query, in bag) bag {
	if m.refused != "" {
		return bag{}
	}
	if q == nil {
		return m.refuse("an empty filter")
	}
	if m.nodes++; m.nodes > maxNodes {
		return m.refuse("more than %d parts", maxNodes)
	}
	if m.depth++; m.depth > maxDepth {
		return m.refuse("nested deeper than %d", maxDepth)
	}
	defer func() { m.depth-- }()
	m.work += in.count
	if len(q.FuncDefs) > 0 {
		return m.refuse("def")
	}
	if q.Term != nil {
		return m.check(m.term(q.Term, in))
	}
	return m.check(m.operator(q, in))
}

// one is the bag of a query of which products are made: at most one result for each input.
func (m *meter) one(q *gojq.Query, in bag) bag {
	b := m.query(q, in)
	if !b.single && m.refused == "" {
		return m.refuse("a product of several results")
	}
	return b
}

func (m *meter) operator(q *gojq.Query, in bag) bag {
	switch q.Op {
	case gojq.OpPipe:
		if len(q.Patterns) > 0 {
			return m.bind(q, in)
		}
		return m.pipe(m.query(q.Left, in), func(b bag) bag { return m.query(q.Right, b) })
	case gojq.OpComma:
		return sum(false, m.query(q.Left, in), m.query(q.Right, in))
	case gojq.OpAlt:
		l, r := m.query(q.Left, in), m.query(q.Right, in)
		return sum(l.single && r.single, l, r)
	case gojq.OpAnd, gojq.OpOr:
		m.one(q.Left, in)
		m.one(q.Right, in)
		return each(in, 5)
	case gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		l, r := m.one(q.Left, in), m.one(q.Right, in)
		m.work += 8 * (l.weight + r.weight)
		return each(in, 5)
	case gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		return m.arithmetic(q.Op, m.one(q.Left, in), m.one(q.Right, in), factor(q.Left), factor(q.Right), in)
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateAlt:
		return m.update(q, in)
	case 0: // its String panics
		return m.refuse("an empty filter")
	default:
		return m.refuse("%s", q.Op.String())
	}
}

// pipe is what flows out of f where b flows in, relative to what flowed into b.
func (m *meter) pipe(b bag, f func(bag) bag) bag {
	out := f(bag{b.count, b.weight, b.largest, true})
	out.single = out.single && b.single
	return out
}

// factor is the value of a literal number to multiply with; 0: not one.
func factor(q *gojq.Query) float64 {
	if q.Term == nil || q.Term.Type != gojq.TermTypeNumber || len(q.Term.SuffixList) > 0 || len(q.FuncDefs) > 0 {
		return 0
	}
	f, err := strconv.ParseFloat(q.Term.Number, 64)
	if err != nil || f > 1000 {
		return 0
	}
	return max(1, math.Ceil(f))
}

func (m *meter) arithmetic(op gojq.Operator, l, r bag, fl, fr float64, in bag) bag {
	out := sum(true, l, r, each(in, digits))
	m.work += 4 * out.weight
	switch op {
	case gojq.OpSub: // of arrays: each with each
		m.work += min(l.largest*r.weight, r.largest*l.weight)
	case gojq.OpMul: // of a string: repetition
		k := max(fl, fr)
		if k == 0 {
			return m.refuse("a product of two unknowns")
		}
		out.weight, out.largest = out.weight*k, out.largest*k
	case gojq.OpDiv: // of strings: split
		out.weight, out.largest = 4*out.weight, 4*out.largest
	}
	return out
}

// bind is `f as $x | g`.
func (m *meter) bind(q *gojq.Query, in bag) bag {
	if len(q.Patterns) != 1 || q.Patterns[0].Name == "" {
		return m.refuse("a pattern")
	}
	f := m.check(m.query(q.Left, in))
	name := q.Patterns[0].Name
	was, had := m.vars[name]
	m.vars[name] = variable{f.largest, false}
	body := bag{in.count, in.weight, in.largest, true}
	if !f.single {
		body = bag{f.count, f.count * in.largest, in.largest, true}
	}
	out := m.query(q.Right, m.check(body))
	delete(m.vars, name)
	if had {
		m.vars[name] = was
	}
	out.single = out.single && f.single
	return out
}

// update is an assignment to simple paths: keys and .[], no indices, which may make an array of any length.
func (m *meter) update(q *gojq.Query, in bag) bag {
	at, keys := m.paths(q.Left, in, false)
	m.work += 16 * (in.weight + at.weight)
	made := in.weight + at.count*keys
	value := bag{single: true}
	switch q.Op {
	case gojq.OpAssign:
		v := m.one(q.Right, in)
		value = bag{at.count, at.count * v.largest, v.largest, true}
	case gojq.OpModify:
		value = m.query(q.Right, bag{at.count, at.weight, at.largest, true})
	default:
		v := m.one(q.Right, in)
		op := map[gojq.Operator]gojq.Operator{gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateAlt: gojq.OpAlt}[q.Op]
		value = m.arithmetic(op, at, bag{at.count, at.count * v.largest, v.largest, true}, 0, 0, at)
	}
	w := made + value.weight
	return bag{in.count, w, w, true}
}

// paths is what simple paths lead to, and the most bytes it takes to make one
// of them where it is missing. Only where nothing is written there may be
// several that meet: (., ., .) |= [., .] doubles at each.
func (m *meter) paths(q *gojq.Query, in bag, several bool) (at bag, keys float64) {
	if q == nil || len(q.FuncDefs) > 0 {
		m.refuse("a path")
		return
	}
	if several && q.Term == nil && q.Op == gojq.OpComma {
		l, kl := m.paths(q.Left, in, several)
		r, kr := m.paths(q.Right, in, several)
		return sum(false, l, r), kl + kr
	}
	if q.Term == nil && q.Op == gojq.OpPipe && len(q.Patterns) == 0 {
		l, kl := m.paths(q.Left, in, several)
		r, kr := m.paths(q.Right, l, several)
		return r, kl + kr
	}
	t := q.Term
	if t == nil {
		m.refuse("a path with an operator")
		return
	}
	key := func(x *gojq.Index) bool {
		name := x.Name
		if x.Str != nil && x.Str.Queries == nil {
			name = x.Str.Str
		} else if name == "" {
			m.refuse("an index to write at")
			return false
		}
		keys += float64(len(name) + 8)
		return true
	}
	switch {
	case t.Type == gojq.TermTypeIdentity:
	case t.Type == gojq.TermTypeIndex && key(t.Index):
	case t.Type == gojq.TermTypeQuery:
		at, keys = m.paths(t.Query, in, several)
		in = at
	default:
		m.refuse("a path")
		return
	}
	at = bag{in.count, in.weight + 4*in.count, in.largest + 4, true}
	for _, s := range t.SuffixList {
		switch {
		case s.Iter:
			at = iterate(at)
		case s.Optional:
		case s.Index == nil || !key(s.Index):
			m.refuse("a path")
			return
		}
	}
	return at, keys
}

// sum is all of several bags that flow out for the same input.
func sum(single bool, bags ...bag) bag {
	out, most := bag{single: single}, 0.0
	for _, b := range bags {
		out.count += b.count
		out.weight += b.weight
		out.largest += b.largest
		most = max(most, b.count)
	}
	if single { // either one of them flows out, or all joined into one
		out.count = most
	}
	return out
}

// each is one value of a given size for each that flows in.
func each(in bag, size float64) bag {
	return bag{in.count, in.count * size, size, true}
}

// grown is one value for each that flows in, of its size times k and some bytes.
func grown(in bag, k, plus float64) bag {
	return bag{in.count, k*in.weight + plus*in.count, k*in.largest + plus, true}
}

// iterate is all elements of what flows in: one takes at least two bytes.
func iterate(in bag) bag {
	return bag{in.weight/2 + in.count, in.weight, in.largest, false}
}

// collect makes one array of what f gives for each that flowed in.
func collect(in, f bag) bag {
	if f.single {
		return bag{in.count, f.weight + 2*in.count, f.largest + 2, true}
	}
	w := f.weight + f.count + 2*in.count
	return bag{in.count, w, w, true}
}

// shortPattern says that a regular expression is cheap to test with: literal, short, and small when compiled.
func shortPattern(s string) bool {
	if len(s) > 64 {
		return false
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return false
	}
	prog, err := syntax.Compile(re.Simplify())
	return err == nil && len(prog.Inst) <= 64
}

// literal is the text of a plain string query.
func literal(q *gojq.Query) (string, bool) {
	t := plainTerm(q)
	if t == nil || t.Type != gojq.TermTypeString || t.Str.Queries != nil {
		return "", false
	}
	return t.Str.Str, true
}

// whole is the value of a literal whole number from 0 to 10,000.
func whole(q *gojq.Query) (float64, bool) {
	n, ok := literalIndex(q)
	return float64(n), ok && n <= 10_000
}
