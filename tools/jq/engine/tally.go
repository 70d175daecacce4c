package engine

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// tally computes one figure of an array as gojq does.
type tally interface {
	add(v any) error // errUnsure: gojq must compute it
	value() any
}

func (e *engine) newTally(t *plan.Tally) tally {
	switch t.Kind {
	case plan.Length:
		return new(counter)
	case plan.Sum:
		return new(sum)
	case plan.Ends:
		return &ends{n: t.N}
	case plan.Sorted:
		return &sorted{keyed: keyed{e: e, by: t.By}, n: t.N}
	case plan.Least, plan.Most:
		return &extreme{keyed: keyed{e: e, by: t.By}, least: t.Kind == plan.Least}
	default:
		return &groups{keyed: keyed{e: e, by: t.By}, of: t, all: map[string]*group{}}
	}
}

type counter int

func (c *counter) add(any) error { *c++; return nil }
func (c *counter) value() any    { return int(*c) }

// sum adds numbers as gojq does. It is unsure of all other values but null, and of integers that do not fit an int.
type sum struct {
	whole int
	float float64
	kind  byte // 0: no number yet, 'i': whole is the sum, 'f': float is
}

func (s *sum) add(v any) error {
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

// ends keeps the first n values, or the last -n.
type ends struct {
	n    int
	kept []any
}

func (t *ends) add(v any) error {
	switch {
	case t.n > 0 && len(t.kept) < t.n:
		t.kept = append(t.kept, v)
	case t.n < 0:
		if len(t.kept) >= -2*t.n {
			t.kept = append(t.kept[:0], t.last()...)
		}
		t.kept = append(t.kept, v)
	}
	return nil
}

func (t *ends) last() []any { return t.kept[max(0, len(t.kept)+t.n):] }

func (t *ends) value() any {
	if t.n < 0 {
		return slices.Clone(t.last())
	}
	return slices.Clone(t.kept)
}

// keyed gives the keys of values: the results of a filter, as in sort_by.
type keyed struct {
	e     *engine
	by    *plan.Filter
	space []any  // of the key
	text  []byte // of the key
}

// key returns the key of a value, which is valid until the next call.
func (k *keyed) key(v any) ([]any, error) {
	k.space = k.space[:0]
	err := k.e.eachResult(k.by, v, func(w any) error {
		k.space = append(k.space, w)
		return nil
	})
	return k.space, err
}

// identify returns the key of a value and its identity: keys are equal, in the order of gojq, if their identities are.
func (k *keyed) identify(v any) ([]any, []byte, error) {
	key, err := k.key(v)
	k.text = k.text[:0]
	for _, w := range key {
		var ok bool
		if k.text, ok = appendIdentity(k.text, w); !ok {
			err = errUnsure
		}
	}
	return key, k.text, err
}

// maxExact is the largest number up to which the order of gojq is an order. Integers above it may equal a number with a
// fraction, and not each other; NaN does not equal itself.
const maxExact = 1 << 53

// appendIdentity appends the identity of a value to b. ok is false for numbers over maxExact and NaN.
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

func compareKeys(a, b []any) int { return gojq.Compare(a, b) }

// extreme keeps the value with the least or the greatest key. It compares in the order of the values, as min_by and
// max_by do.
type extreme struct {
	keyed
	least, begun bool
	best         []any
	kept         any
}

func (t *extreme) add(v any) error {
	key, err := t.key(v)
	if err != nil {
		return err
	}
	if !t.begun || compareKeys(t.best, key) > 0 == t.least {
		t.best, t.kept, t.begun = append(t.best[:0], key...), v, true
	}
	return nil
}

func (t *extreme) value() any { return t.kept }

// sorted keeps the first n values in the order of their keys, or the last -n. Values with equal keys stay in order.
type sorted struct {
	keyed
	n    int
	kept []sortedValue
}

type sortedValue struct {
	key []any
	v   any
}

func (t *sorted) add(v any) error {
	key, _, err := t.identify(v) // where gojq's order is none, what it gives depends on its algorithm
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearchFunc(t.kept, key, func(s sortedValue, key []any) int {
		if compareKeys(s.key, key) > 0 {
			return 1
		}
		return -1
	})
	switch {
	case len(t.kept) < max(t.n, -t.n):
		t.kept = slices.Insert(t.kept, at, sortedValue{slices.Clone(key), v})
	case t.n > 0 && at < t.n:
		copy(t.kept[at+1:], t.kept[at:t.n-1])
		t.kept[at] = sortedValue{slices.Clone(key), v}
	case t.n < 0 && at > 0:
		copy(t.kept, t.kept[1:at])
		t.kept[at-1] = sortedValue{slices.Clone(key), v}
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

// groups keeps the first value of each key, or the figures of all values with the key.
type groups struct {
	keyed
	of  *plan.Tally
	all map[string]*group
}

type group struct {
	key   []any
	first any
	*figures
}

func (t *groups) add(v any) error {
	key, text, err := t.identify(v)
	if err != nil {
		return err
	}
	g := t.all[string(text)]
	if g == nil {
		g = &group{key: slices.Clone(key)}
		if t.of.Kind == plan.Groups {
			g.figures = t.e.figures(t.of.Of)
		} else {
			g.first = v
		}
		t.all[string(text)] = g
	}
	if g.figures != nil {
		return g.figures.add(v)
	}
	return nil
}

func (t *groups) value() any {
	all := slices.SortedFunc(maps.Values(t.all), func(a, b *group) int { return compareKeys(a.key, b.key) })
	values := make([]any, len(all))
	for i, g := range all {
		if values[i] = g.first; g.figures != nil {
			values[i] = g.figures.values()
		}
	}
	return values
}
