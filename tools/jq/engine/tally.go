package engine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// errUnsure means that a fold cannot compute what gojq computes, or that a filter failed on an element: the filter must
// run on the whole array.
var errUnsure = errors.New("unsure")

// figures are the tallies of an array, or of a group of its elements.
type figures struct {
	of  []plan.Tally
	now []tally
}

func newFigures(of []plan.Tally) *figures {
	f := &figures{of: of, now: make([]tally, len(of))}
	for i := range of {
		f.now[i] = newTally(&of[i])
	}
	return f
}

// add adds the row of an element: for each tally a list of values, or of keys with values.
func (f *figures) add(row any) error {
	for i, cell := range row.([]any) {
		for _, v := range cell.([]any) {
			var key []any
			if f.of[i].Keyed() {
				pair := v.([]any)
				key, v = pair[0].([]any), pair[1]
			}
			if err := f.now[i].add(key, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// values returns the values of the tallies, on which the rest of the filter runs.
func (f *figures) values() any {
	all := make([]any, len(f.now))
	for i, t := range f.now {
		all[i] = t.value()
	}
	return all
}

// tally computes one figure of an array as gojq does.
type tally interface {
	// add adds a value with its key, if the tally is keyed. The error is errUnsure if gojq must compute the figure.
	add(key []any, v any) error
	value() any
}

func newTally(t *plan.Tally) tally {
	switch t.Kind {
	case plan.Length:
		return new(counter)
	case plan.Sum:
		return new(sum)
	case plan.Nth:
		return &nth{left: t.N}
	case plan.Ends:
		return &ends{n: t.N}
	case plan.Sorted:
		return &sorted{n: t.N}
	case plan.Least, plan.Most:
		return &extreme{least: t.Kind == plan.Least}
	default:
		return &groups{of: t, all: map[string]*group{}}
	}
}

type counter int

func (c *counter) add([]any, any) error { *c++; return nil }
func (c *counter) value() any           { return int(*c) }

// sum adds numbers as gojq does. It is unsure of all other values but null, and of integers that do not fit an int.
type sum struct {
	whole int
	float float64
	kind  byte // 0: no number yet, 'i': whole is the sum, 'f': float is
}

func (s *sum) add(_ []any, v any) error {
	if v == nil {
		return nil
	}
	n, ok := number(v)
	if !ok {
		return errUnsure
	}
	i, isInt := n.(int)
	switch {
	case isInt && s.kind == 'i':
		sum := s.whole + i
		if (sum >= s.whole) != (i >= 0) {
			return errUnsure
		}
		s.whole = sum
	case isInt && s.kind == 0:
		s.whole, s.kind = i, 'i'
	case isInt:
		s.float += float64(i)
	case s.kind == 0:
		s.float, s.kind = n.(float64), 'f'
	case s.kind == 'i':
		s.float, s.kind = float64(s.whole)+n.(float64), 'f'
	default:
		s.float += n.(float64)
	}
	return nil
}

func (s *sum) value() any {
	switch s.kind {
	case 'i':
		return s.whole
	case 'f':
		return s.float
	}
	return nil
}

// number returns a number as gojq computes with it, an int or a float64; ok is false for all other values.
func number(v any) (n any, ok bool) {
	switch v := v.(type) {
	case int, float64:
		return v, true
	case json.Number:
		if i, err := v.Int64(); err == nil && math.MinInt <= i && i <= math.MaxInt {
			return int(i), true
		}
		if strings.ContainsAny(string(v), ".eE") {
			f, err := v.Float64()
			return f, err == nil
		}
	}
	return nil, false
}

// nth keeps the value after left others.
type nth struct {
	left int
	kept any
}

func (t *nth) add(_ []any, v any) error {
	if t.left == 0 {
		t.kept = v
	}
	t.left--
	return nil
}

func (t *nth) value() any { return t.kept }

// ends keeps the first n values, or the last -n.
type ends struct {
	n    int
	kept []any
}

func (t *ends) add(_ []any, v any) error {
	switch {
	case t.n > 0 && len(t.kept) >= t.n:
		return nil
	case t.n < 0 && len(t.kept) >= -2*t.n:
		t.kept = append(t.kept[:0], t.last()...)
	}
	t.kept = append(t.kept, v)
	return nil
}

func (t *ends) last() []any { return t.kept[max(0, len(t.kept)+t.n):] }

func (t *ends) value() any {
	if t.n < 0 {
		return slices.Clone(t.last())
	}
	return slices.Clone(t.kept)
}

// maxExact is the largest number up to which the order of gojq is an order. Integers above it may equal a number with a
// fraction, and not each other; NaN does not equal itself.
const maxExact = 1 << 53

// appendIdentity appends the identity of a value to b: values are equal, in the order of gojq, if their identities are.
// ok is false for numbers over maxExact and NaN.
func appendIdentity(b []byte, v any) (_ []byte, ok bool) {
	switch v := v.(type) {
	case nil:
		return append(b, 'n'), true
	case bool:
		if v {
			return append(b, 't'), true
		}
		return append(b, 'f'), true
	case string:
		return append(binary.AppendUvarint(append(b, '"'), uint64(len(v))), v...), true
	case []any:
		b, ok = binary.AppendUvarint(append(b, '['), uint64(len(v))), true
		for i := 0; ok && i < len(v); i++ {
			b, ok = appendIdentity(b, v[i])
		}
		return b, ok
	case map[string]any:
		b, ok = binary.AppendUvarint(append(b, '{'), uint64(len(v))), true
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if b, _ = appendIdentity(b, k); ok {
				b, ok = appendIdentity(b, v[k])
			}
		}
		return b, ok
	}
	n, ok := number(v)
	f, isFloat := n.(float64)
	if i, isInt := n.(int); isInt && -maxExact <= i && i <= maxExact {
		f, isFloat = float64(i), true
	}
	if !isFloat || !(math.Abs(f) <= maxExact) {
		return b, false
	}
	return binary.LittleEndian.AppendUint64(append(b, '0'), math.Float64bits(f+0)), ok // -0 is 0
}

// extreme keeps the value with the least or the greatest key. It compares in the order of the values, as min_by and
// max_by do.
type extreme struct {
	least, begun bool
	best         []any
	kept         any
}

func (t *extreme) add(key []any, v any) error {
	if !t.begun || gojq.Compare(t.best, key) > 0 == t.least {
		t.best, t.kept, t.begun = key, v, true
	}
	return nil
}

func (t *extreme) value() any { return t.kept }

// sorted keeps the first n values in the order of their keys, or the last -n. Values with equal keys stay in order.
type sorted struct {
	n    int
	text []byte
	kept []sortedValue
}

type sortedValue struct {
	key []any
	v   any
}

func (t *sorted) add(key []any, v any) error {
	var ok bool
	if t.text, ok = appendIdentity(t.text[:0], key); !ok { // gojq does not order such keys consistently
		return errUnsure
	}
	at, _ := slices.BinarySearchFunc(t.kept, key, func(s sortedValue, key []any) int {
		if gojq.Compare(s.key, key) > 0 {
			return 1
		}
		return -1
	})
	full := len(t.kept) == max(t.n, -t.n)
	if full && (t.n > 0 && at == t.n || t.n < 0 && at == 0) {
		return nil
	}
	t.kept = slices.Insert(t.kept, at, sortedValue{key, v})
	switch {
	case full && t.n > 0:
		t.kept = t.kept[:t.n]
	case full:
		t.kept = slices.Delete(t.kept, 0, 1)
	}
	return nil
}

func (t *sorted) value() any {
	all := make([]any, len(t.kept))
	for i, s := range t.kept {
		all[i] = s.v
	}
	return all
}

// groups keeps the figures of the values of each key.
type groups struct {
	of   *plan.Tally
	all  map[string]*group
	text []byte // of a key
}

type group struct {
	key []any
	*figures
}

func (t *groups) add(key []any, v any) error {
	var ok bool
	if t.text, ok = appendIdentity(t.text[:0], key); !ok { // gojq must compare the keys
		return errUnsure
	}
	g := t.all[string(t.text)]
	if g == nil {
		g = &group{key, newFigures(t.of.Of)}
		t.all[string(t.text)] = g
	}
	return g.add(v)
}

func (t *groups) value() any {
	all := slices.SortedFunc(maps.Values(t.all), func(a, b *group) int { return gojq.Compare(a.key, b.key) })
	values := make([]any, len(all))
	for i, g := range all {
		values[i] = g.values()
	}
	return values
}
