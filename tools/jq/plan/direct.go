package plan

import (
	"context"

	"github.com/itchyny/gojq"
)

// # Filters that are answered without the interpreter
//
// gojq makes an environment for each run, which costs more than most filters of one value do. Filters that give at
// most one result, and use nothing but paths of names and indices, literals, comparisons, and, or, not, select, empty,
// //, if, and objects and arrays of those, are also Go functions. A function answers only if gojq surely gives the
// same result; otherwise it returns unsure, and gojq runs the filter and words the error. gojq itself evaluates the
// literals and compares.
//
// The row "jq: 200 MB, streamable: select by two keys" of docs/SPEED.md needs it.
//
// # Which filters are safe in this process
//
// gojq can take all memory at once, overflow the stack, and ignore cancellation inside one built-in: most filters run
// in a worker. A direct filter can do none of that, in gojq either: it has no loops, no recursion and no built-in that
// makes values, and costOf bounds from its syntax how many copies of its input it makes and compares. So direct
// filters run in this process on sources of at most 64 KiB (smallText of tools/jq), and ahead of their turn in the
// lanes. A result takes at most maxCopies × 64 KiB there before it is escaped, and the steps of all records take about
// a second at most.

// Answer is what a direct function says of its result.
type Answer int

const (
	unsure Answer = iota // gojq must run the filter
	NoResult
	OneResult
)

// Direct returns the one result of a filter on v, or none. If the answer is neither, gojq must run the filter.
type Direct func(v any) (any, Answer)

// Filter is a compiled query.
type Filter struct {
	Code   *gojq.Code
	Direct Direct // nil: only Code can run it
}

// maxDirect is the length in bytes of a filter that may become a Go function. gojq compiles each literal of such a
// filter by itself: the 8,000 of "1+1+…" took 54 MiB. A bounded filter has at most maxSteps steps, and is far shorter.
const maxDirect = 2 << 10

// ready compiles a query of this program, also to a Go function if it is one of those.
func (p *program) ready(q *gojq.Query) (*Filter, error) {
	code, err := p.compile(q)
	if err != nil {
		return nil, err
	}
	f := &Filter{Code: code}
	if len(p.filter) > maxDirect {
		return f, nil
	}
	if d := directly(q); d != nil && costOf(q).bounded() {
		f.Direct = d
	}
	return f, nil
}

// directly returns a query as a function, nil if it is not one of those.
func directly(q *gojq.Query) Direct {
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
		return func(v any) (any, Answer) {
			if w, a := left(v); a != NoResult && (a == unsure || truth(w)) {
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
		return func(v any) (any, Answer) {
			l, a := left(v)
			r, b := right(v)
			if a != OneResult || b != OneResult {
				return nil, unsure
			}
			return holds(gojq.Compare(l, r)), OneResult
		}
	}
	return nil
}

func piped(left, right Direct) Direct {
	return func(v any) (any, Answer) {
		v, a := left(v)
		if a != OneResult {
			return nil, a
		}
		return right(v)
	}
}

// joinedBy is and and or: the second one is not asked where the first one decides.
func joinedBy(left, right Direct, decides bool) Direct {
	return func(v any) (any, Answer) {
		l, a := left(v)
		if a != OneResult {
			return nil, a
		}
		if truth(l) == decides {
			return decides, OneResult
		}
		r, a := right(v)
		if a != OneResult {
			return nil, a
		}
		return truth(r), OneResult
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
func directTerm(t *gojq.Term) Direct {
	d := directHead(t)
	for _, s := range t.SuffixList {
		if s.Index == nil {
			return nil
		}
		d = indexed(d, s.Index)
	}
	return d
}

func directHead(t *gojq.Term) Direct {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return func(v any) (any, Answer) { return v, OneResult }
	case gojq.TermTypeIndex:
		return indexed(func(v any) (any, Answer) { return v, OneResult }, t.Index)
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
func constant(t *gojq.Term) Direct {
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
	return func(any) (any, Answer) { return c, OneResult }
}

// indexed is .name or .[n] of what d gives.
func indexed(d Direct, x *gojq.Index) Direct {
	if d == nil {
		return nil
	}
	if name, ok := keyOf(x); ok {
		return func(v any) (any, Answer) {
			v, a := d(v)
			if a != OneResult || v == nil {
				return nil, a
			}
			m, ok := v.(map[string]any)
			if !ok {
				return nil, unsure
			}
			return m[name], OneResult
		}
	}
	i, ok := smallIndex(x.Start)
	if !ok || x.IsSlice {
		return nil
	}
	return func(v any) (any, Answer) {
		v, a := d(v)
		if a != OneResult || v == nil {
			return nil, a
		}
		s, ok := v.([]any)
		switch {
		case !ok:
			return nil, unsure
		case i >= len(s):
			return nil, OneResult
		}
		return s[i], OneResult
	}
}

func directCall(f *gojq.Func) Direct {
	switch {
	case f.Name == "not" && len(f.Args) == 0:
		return func(v any) (any, Answer) { return !truth(v), OneResult }
	case f.Name == "empty" && len(f.Args) == 0:
		return func(any) (any, Answer) { return nil, NoResult }
	case f.Name == "select" && len(f.Args) == 1:
		test := directly(f.Args[0])
		if test == nil {
			return nil
		}
		return func(v any) (any, Answer) {
			is, a := test(v)
			switch {
			case a != OneResult:
				return nil, a
			case truth(is):
				return v, OneResult
			}
			return nil, NoResult
		}
	}
	return nil
}

func directIf(i *gojq.If) Direct {
	test, then := directly(i.Cond), directly(i.Then)
	otherwise := func(v any) (any, Answer) { return v, OneResult }
	switch {
	case len(i.Elif) > 0:
		otherwise = directIf(&gojq.If{Cond: i.Elif[0].Cond, Then: i.Elif[0].Then, Elif: i.Elif[1:], Else: i.Else})
	case i.Else != nil:
		otherwise = directly(i.Else)
	}
	if test == nil || then == nil || otherwise == nil {
		return nil
	}
	return func(v any) (any, Answer) {
		is, a := test(v)
		switch {
		case a != OneResult:
			return nil, a
		case truth(is):
			return then(v)
		}
		return otherwise(v)
	}
}

func directObject(o *gojq.Object) Direct {
	keys, values := make([]string, len(o.KeyVals)), make([]Direct, len(o.KeyVals))
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
	return func(v any) (any, Answer) {
		m := make(map[string]any, len(keys))
		for i, d := range values {
			w, a := d(v)
			if a != OneResult {
				return nil, unsure
			}
			m[keys[i]] = w
		}
		return m, OneResult
	}
}

func directArray(a *gojq.Array) Direct {
	parts := directParts(a.Query, nil)
	if parts == nil {
		return nil
	}
	return func(v any) (any, Answer) {
		all := make([]any, 0, len(parts))
		for _, d := range parts {
			switch w, a := d(v); a {
			case unsure:
				return nil, unsure
			case OneResult:
				all = append(all, w)
			}
		}
		return all, OneResult
	}
}

// directParts are what commas stand between; nil: they are not all direct, or there are none.
func directParts(q *gojq.Query, before []Direct) []Direct {
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
