package plan

import (
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// isCall reports whether q is nothing but a call of a function with so many arguments.
func isCall(q *gojq.Query, name string, args int) bool {
	return isPlain(q, gojq.TermTypeFunc) && isNamed(q.Term.Func, name, args)
}

func isNamed(f *gojq.Func, name string, args int) bool { return f.Name == name && len(f.Args) == args }

// signature returns the name of a function and the number of its arguments: limit/2.
func signature(f *gojq.Func) string { return f.Name + "/" + strconv.Itoa(len(f.Args)) }

// isPlain reports whether q is nothing but a term of this type, without suffixes.
func isPlain(q *gojq.Query, kind gojq.TermType) bool {
	t := plainTerm(q)
	return t != nil && t.Type == kind
}

// plainTerm returns the term of which q consists, nil if q is something else or the term has suffixes.
func plainTerm(q *gojq.Query) *gojq.Term {
	if q == nil || q.Term == nil || len(q.FuncDefs) > 0 || len(q.Term.SuffixList) > 0 {
		return nil
	}
	return q.Term
}

// keyOf returns the literal key of an index, as in .a, ."a" and .["a"]; ok is false for all others.
func keyOf(x *gojq.Index) (key string, ok bool) {
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

// sliceOf returns the literal range of a slice; to is -1 if the slice has no end. ok is false for all other indices.
func sliceOf(x *gojq.Index) (from, to int64, ok bool) {
	ok, to = x.IsSlice, -1
	if ok && x.Start != nil {
		from, ok = literalIndex(x.Start)
	}
	if ok && x.End != nil {
		to, ok = literalIndex(x.End)
	}
	return from, to, ok
}

// literalIndex returns the value of a literal whole number from 0 to 2³¹-1.
func literalIndex(q *gojq.Query) (int64, bool) {
	if !isPlain(q, gojq.TermTypeNumber) {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(q.Term.Number), 10, 32)
	return n, err == nil && n >= 0
}

// literal returns the text of a string literal without interpolation.
func literal(q *gojq.Query) (string, bool) {
	if !isPlain(q, gojq.TermTypeString) || q.Term.Str.Queries != nil {
		return "", false
	}
	return q.Term.Str.Str, true
}

// constant reports whether q is a number or a string literal.
func constant(q *gojq.Query) bool {
	t := plainTerm(q)
	if t != nil && t.Type == gojq.TermTypeUnary && len(t.Unary.Term.SuffixList) == 0 {
		t = t.Unary.Term
	}
	return t != nil && (t.Type == gojq.TermTypeNumber || t.Type == gojq.TermTypeString && t.Str.Queries == nil)
}
