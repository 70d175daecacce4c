package plan

import "github.com/itchyny/gojq"

// # Which filters are safe in this process
//
// gojq can allocate all memory at once, overflow the stack, and ignore cancellation inside a built-in function.
// Therefore most filters run in a worker. A filter of paths of names and indices, literals, comparisons, and, or, not,
// select, empty, //, if, and objects and arrays of those does none of these: it has no loop, no recursion and no
// built-in function that makes values. Each of its parts runs once for a value, on no more than the value, because no
// object and no array that it makes goes through a pipe: [.,.]|[.,.] would make four copies, and each further |[.,.]
// double them. So such a filter, also on each element of an array, runs in this process on a source of at most 64 KiB
// (smallText of tools/jq), without waiting for a worker. Its result has at most a copy of the value for every two bytes
// of the filter.

// maxSafe is the length, in bytes, of the longest filter that runs in this process.
const maxSafe = 200

// isSafe reports whether a filter may run in this process.
func isSafe(filter string, q *gojq.Query) bool {
	if all := stagesIn(q); len(all) > 0 && all[0].iterates() {
		q = joined(all[1:])
	}
	return len(filter) <= maxSafe && safe(q, true)
}

// safe is isSafe for a part of a filter, which may make an object or an array only with makes.
func safe(q *gojq.Query, makes bool) bool {
	switch {
	case q == nil:
		return true
	case len(q.FuncDefs) > 0 || q.Meta != nil || len(q.Imports) > 0 || len(q.Patterns) > 0:
		return false
	case q.Term != nil:
		return safeTerm(q.Term, makes)
	}
	switch q.Op {
	case gojq.OpPipe:
		return safe(q.Left, false) && safe(q.Right, makes)
	case gojq.OpAlt:
		return safe(q.Left, makes) && safe(q.Right, makes)
	case gojq.OpAnd, gojq.OpOr, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return safe(q.Left, true) && safe(q.Right, true)
	}
	return false
}

func safeTerm(t *gojq.Term, makes bool) bool {
	for _, s := range append([]*gojq.Suffix{{Index: t.Index}}, t.SuffixList...) {
		if s.Iter || s.Optional || s.Index != nil && !simpleIndex(s.Index) {
			return false
		}
	}
	inner := func(q *gojq.Query) bool { return safe(q, makes) }
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeIndex, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse,
		gojq.TermTypeNumber:
		return true
	case gojq.TermTypeString:
		return t.Str.Queries == nil
	case gojq.TermTypeUnary:
		return constant(asQuery(t))
	case gojq.TermTypeFunc:
		return isNamed(t.Func, "select", 1) && safe(t.Func.Args[0], true) || isNamed(t.Func, "not", 0) ||
			isNamed(t.Func, "empty", 0)
	case gojq.TermTypeQuery, gojq.TermTypeIf:
		return all(parts(t), inner)
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			if kv.KeyQuery != nil {
				return false
			}
		}
		return makes && all(parts(t), inner)
	case gojq.TermTypeArray:
		return makes && safeParts(t.Array.Query)
	}
	return false
}

// safeParts is safe for the queries of an array, which commas join.
func safeParts(q *gojq.Query) bool {
	if q != nil && q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		return safeParts(q.Left) && safeParts(q.Right)
	}
	return safe(q, true)
}

func simpleIndex(x *gojq.Index) bool {
	_, isKey := keyOf(x)
	_, isIndex := literalIndex(x.Start)
	return isKey || isIndex && !x.IsSlice
}
