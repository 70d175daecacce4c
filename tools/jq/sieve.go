package jq

import (
	"reflect"

	"github.com/itchyny/gojq"
)

// sieve says of a value, from the few parts of it that are looked at, that a filter gives nothing of it: where a
// select of the filter lets it through, and only there, is it made as far as the rest reads it. What is read of a value that is
// dropped are those parts: a key that stands twice elsewhere in it is not told.
type sieve struct {
	test direct
	node *node // what test reads
}

// sieveOf is the sieve of a filter that reads full; nil: it has none, or none that reads less.
func sieveOf(q *gojq.Query, full *node) *sieve {
	var test direct
	var before *gojq.Query
	for _, part := range pipeline(q, nil) {
		d := directly(part)
		if d == nil {
			return nil
		}
		if test == nil {
			test, before = d, part
		} else {
			test, before = piped(test, d), &gojq.Query{Left: before, Op: gojq.OpPipe, Right: part}
		}
		if f := called(part); f == nil || f.Name != "select" {
			continue
		}
		n := readsOf(before, true)
		if n == nil || reflect.DeepEqual(n, full) {
			return nil
		}
		return &sieve{test, n}
	}
	return nil
}

// pipeline is what pipes stand between.
func pipeline(q *gojq.Query, before []*gojq.Query) []*gojq.Query {
	if q != nil && q.Term == nil && q.Op == gojq.OpPipe && len(q.FuncDefs) == 0 && len(q.Patterns) == 0 && q.Meta == nil && len(q.Imports) == 0 {
		return pipeline(q.Right, pipeline(q.Left, before))
	}
	return append(before, q)
}

// sifting is a sieve at work on a batch. Where it lets most through, it is put away: it would only be in the way.
type sifting struct {
	*sieve
	tried, passed int
}

// drops moves over the next value if the filter gives nothing of it.
func (s *sifting) drops(q *quick) bool {
	if s.sieve == nil || 2*s.passed > s.tried+16 {
		return false
	}
	start := q.i
	s.tried++
	if v, ok := q.value(s.node, 0); ok {
		if _, a := s.test(v); a == noResult {
			return true
		}
	}
	s.passed++
	q.i = start
	return false
}
