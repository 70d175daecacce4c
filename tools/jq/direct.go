package jq

import (
	"context"

	"github.com/itchyny/gojq"
)

// # Filters that are answered without the interpreter
//
// gojq makes an environment for each run, which costs more than most filters of one value do. Those that give at most one
// result, and need no more than paths of names and indices, comparisons, and, or, not, select, //, if, and objects and
// arrays of those, are also functions. A function answers only where it surely says what gojq would:
// whatever would fail, it leaves to gojq, with its words. Literals are what gojq makes of them, comparisons its own.
//
// Only comparisons depend on the size of the value, so a run needs no deadline of its own.

// answer is what a direct says.
type answer int

const (
	unsure answer = iota // gojq decides
	noResult
	oneResult
)

// direct gives the one result of a filter on v, or none.
type direct func(v any) (any, answer)

// filter is a program that is ready to run.
type filter struct {
	code   *gojq.Code
	direct direct // nil: only code can
}

// ready makes a query of this program ready to run.
func (p *program) ready(q *gojq.Query) (*filter, error) {
	code, err := p.compile(q)
	if err != nil {
		return nil, err
	}
	return &filter{code, directly(q)}, nil
}

// directly is a query as a function; nil: it is not one of those.
func directly(q *gojq.Query) direct {
	if q == nil || len(q.FuncDefs) > 0 || q.Meta != nil || len(q.Imports) > 0 || len(q.Patterns) > 0 {
		return nil
	}
	if q.Term != nil {
		return directTerm(q.Term)
	}
	left, right := directly(q.Left), directly(q.Right)
	if left == nil || right == nil {
		return nil
	}
	switch q.Op {
	case gojq.OpPipe:
		return piped(left, right)
	case gojq.OpAlt:
		return func(v any) (any, answer) {
			if w, a := left(v); a != noResult && (a == unsure || truth(w)) {
				return w, a
			}
			return right(v)
		}
	case gojq.OpAnd:
		return joinedBy(left, right, false)
	case gojq.OpOr:
		return joinedBy(left, right, true)
	}
	if holds := comparing(q.Op); holds != nil {
		return func(v any) (any, answer) {
			l, a := left(v)
			r, b := right(v)
			if a != oneResult || b != oneResult {
				return nil, unsure
			}
			return holds(gojq.Compare(l, r)), oneResult
		}
	}
	return nil
}

func piped(left, right direct) direct {
	return func(v any) (any, answer) {
		v, a := left(v)
		if a != oneResult {
			return nil, a
		}
		return right(v)
	}
}

// joinedBy is and and or: the second one is not asked where the first one decides.
func joinedBy(left, right direct, decides bool) direct {
	return func(v any) (any, answer) {
		l, a := left(v)
		if a != oneResult {
			return nil, a
		}
		if truth(l) == decides {
			return decides, oneResult
		}
		r, a := right(v)
		if a != oneResult {
			return nil, a
		}
		return truth(r), oneResult
	}
}

func truth(v any) bool { return v != nil && v != false }

// comparing says of an operator which results of a comparison make it true; nil: it does not compare.
func comparing(op gojq.Operator) func(int) bool {
	switch op {
	case gojq.OpEq:
		return func(c int) bool { return c == 0 }
	case gojq.OpNe:
		return func(c int) bool { return c != 0 }
	case gojq.OpGt:
		return func(c int) bool { return c > 0 }
	case gojq.OpLt:
		return func(c int) bool { return c < 0 }
	case gojq.OpGe:
		return func(c int) bool { return c >= 0 }
	case gojq.OpLe:
		return func(c int) bool { return c <= 0 }
	}
	return nil
}

// directTerm is a term with its suffixes.
func directTerm(t *gojq.Term) direct {
	d := directHead(t)
	for _, s := range t.SuffixList {
		if s.Index == nil {
			return nil
		}
		d = indexed(d, s.Index)
	}
	return d
}

func directHead(t *gojq.Term) direct {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return func(v any) (any, answer) { return v, oneResult }
	case gojq.TermTypeIndex:
		return indexed(func(v any) (any, answer) { return v, oneResult }, t.Index)
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeUnary, gojq.TermTypeString:
		return constant(t)
	case gojq.TermTypeFunc:
		return directCall(t.Func)
	case gojq.TermTypeQuery:
		return directly(t.Query)
	case gojq.TermTypeIf:
		return directIf(t.If)
	case gojq.TermTypeObject:
		return directObject(t.Object)
	case gojq.TermTypeArray:
		return directArray(t.Array)
	}
	return nil
}

// constant is a literal, which gojq itself reads.
func constant(t *gojq.Term) direct {
	of := t
	if t.Type == gojq.TermTypeUnary {
		if of = t.Unary.Term; of.Type != gojq.TermTypeNumber || len(of.SuffixList) > 0 {
			return nil
		}
	}
	if of.Type == gojq.TermTypeString && of.Str.Queries != nil {
		return nil
	}
	bare := *t
	bare.SuffixList = nil
	code, err := gojq.Compile(&gojq.Query{Term: &bare})
	if err != nil {
		return nil
	}
	c, ok := code.RunWithContext(context.Background(), nil).Next()
	if _, failed := c.(error); failed || !ok {
		return nil
	}
	return func(any) (any, answer) { return c, oneResult }
}

// indexed is .name or .[n] of what d gives.
func indexed(d direct, x *gojq.Index) direct {
	if d == nil {
		return nil
	}
	if name, ok := keyOf(x); ok {
		return func(v any) (any, answer) {
			v, a := d(v)
			if a != oneResult || v == nil {
				return nil, a
			}
			m, ok := v.(map[string]any)
			if !ok {
				return nil, unsure
			}
			return m[name], oneResult
		}
	}
	n, ok := whole(x.Start)
	if !ok || x.IsSlice {
		return nil
	}
	i := int(n)
	return func(v any) (any, answer) {
		v, a := d(v)
		if a != oneResult || v == nil {
			return nil, a
		}
		s, ok := v.([]any)
		switch {
		case !ok:
			return nil, unsure
		case i >= len(s):
			return nil, oneResult
		}
		return s[i], oneResult
	}
}

func directCall(f *gojq.Func) direct {
	switch {
	case f.Name == "not" && len(f.Args) == 0:
		return func(v any) (any, answer) { return !truth(v), oneResult }
	case f.Name == "empty" && len(f.Args) == 0:
		return func(any) (any, answer) { return nil, noResult }
	case f.Name == "select" && len(f.Args) == 1:
		test := directly(f.Args[0])
		if test == nil {
			return nil
		}
		return func(v any) (any, answer) {
			is, a := test(v)
			switch {
			case a != oneResult:
				return nil, a
			case truth(is):
				return v, oneResult
			}
			return nil, noResult
		}
	}
	return nil
}

func directIf(i *gojq.If) direct {
	test, then := directly(i.Cond), directly(i.Then)
	otherwise := func(v any) (any, answer) { return v, oneResult }
	switch {
	case len(i.Elif) > 0:
		otherwise = directIf(&gojq.If{Cond: i.Elif[0].Cond, Then: i.Elif[0].Then, Elif: i.Elif[1:], Else: i.Else})
	case i.Else != nil:
		otherwise = directly(i.Else)
	}
	if test == nil || then == nil || otherwise == nil {
		return nil
	}
	return func(v any) (any, answer) {
		is, a := test(v)
		switch {
		case a != oneResult:
			return nil, a
		case truth(is):
			return then(v)
		}
		return otherwise(v)
	}
}

func directObject(o *gojq.Object) direct {
	keys, values := make([]string, len(o.KeyVals)), make([]direct, len(o.KeyVals))
	for i, kv := range o.KeyVals {
		key := kv.Key
		if kv.KeyString != nil && kv.KeyString.Queries == nil {
			key = kv.KeyString.Str
		} else if key == "" || key[0] == '$' {
			return nil
		}
		keys[i], values[i] = key, directly(kv.Val)
		if kv.Val == nil {
			values[i] = directTerm(&gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Str: &gojq.String{Str: key}}})
		}
		if values[i] == nil {
			return nil
		}
	}
	return func(v any) (any, answer) {
		m := make(map[string]any, len(keys))
		for i, d := range values {
			w, a := d(v)
			if a != oneResult {
				return nil, unsure
			}
			m[keys[i]] = w
		}
		return m, oneResult
	}
}

func directArray(a *gojq.Array) direct {
	parts := directParts(a.Query, nil)
	if parts == nil {
		return nil
	}
	return func(v any) (any, answer) {
		all := make([]any, 0, len(parts))
		for _, d := range parts {
			switch w, a := d(v); a {
			case unsure:
				return nil, unsure
			case oneResult:
				all = append(all, w)
			}
		}
		return all, oneResult
	}
}

// directParts are what commas stand between; nil: they are not all direct, or there are none.
func directParts(q *gojq.Query, before []direct) []direct {
	if q != nil && q.Term == nil && q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		if before = directParts(q.Left, before); before == nil {
			return nil
		}
		return directParts(q.Right, before)
	}
	d := directly(q)
	if d == nil {
		return nil
	}
	return append(before, d)
}
