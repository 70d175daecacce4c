package plan

import (
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

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

// literal is the text of a plain string query.
func literal(q *gojq.Query) (string, bool) {
	t := plainTerm(q)
	if t == nil || t.Type != gojq.TermTypeString || t.Str.Queries != nil {
		return "", false
	}
	return t.Str.Str, true
}

// smallIndex is the value of a literal whole number from 0 to 10,000.
func smallIndex(q *gojq.Query) (int, bool) {
	n, ok := literalIndex(q)
	return int(n), ok && n <= 10_000
}

func constantOrNone(q *gojq.Query) bool {
	if q == nil {
		return true
	}
	t := plainTerm(q)
	if t != nil && t.Type == gojq.TermTypeUnary && len(t.Unary.Term.SuffixList) == 0 {
		t = t.Unary.Term
	}
	return t != nil && (t.Type == gojq.TermTypeNumber || t.Type == gojq.TermTypeString && t.Str.Queries == nil)
}
