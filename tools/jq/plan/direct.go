package plan

import (
	"context"

	"github.com/itchyny/gojq"
)

// # Filters that are answered without the interpreter
//
// gojq makes an environment for each run, which takes longer than most filters of one value. A filter is also compiled
// to a Go function if it has at most one result and uses only paths of names and indices, literals, comparisons, and,
// or, not, select, empty, //, if, and objects and arrays of those. The function returns a result only if gojq surely
// returns the same; otherwise it returns unsure, and gojq runs the filter and words the error. gojq evaluates the
// literals and compares the values.
//
// The row "jq: 200 MB, streamable: select by two keys" of docs/SPEED.md needs it.
//
// # Which filters are safe in this process
//
// gojq can allocate all memory at once, overflow the stack, and ignore cancellation inside a built-in function.
// Therefore most filters run in a worker. A direct filter does none of these, in gojq neither: it has no loop, no
// recursion and no built-in function that makes values, and costOf bounds from its syntax how many copies of its input
// it makes and compares. So direct filters run in this process on sources of at most 64 KiB (smallText of tools/jq),
// and ahead of their turn in the lanes. A result takes at most maxCopies × 64 KiB there before it is escaped, and the
// steps of all records take about a second at most.

// Answer reports whether a direct function has a result.
type Answer int

const (
	unsure Answer = iota // gojq must run the filter
	NoResult
	OneResult
)

// Direct runs a filter on v. The value counts only with OneResult; with unsure, gojq must run the filter.
type Direct func(v any) (any, Answer)

// Filter is a compiled query.
type Filter struct {
	Code   *gojq.Code
	Direct Direct // nil if the filter needs gojq
}

// maxDirect is the length, in bytes, of the longest filter that is compiled to a Go function. gojq compiles each
// literal of such a filter separately: the 8,000 literals of "1+1+…" took 54 MiB. A filter of at most maxSteps steps is
// far shorter.
const maxDirect = 2 << 10

// compileFilter compiles a query of this program by gojq, and to a Go function if the query is direct and bounded.
func (p *program) compileFilter(q *gojq.Query) (*Filter, error) {
	code, err := p.compile(q)
	if err != nil {
		return nil, err
	}
	f := &Filter{Code: code}
	if len(p.filter) > maxDirect {
		return f, nil
	}
	if d := compileDirect(q); d != nil && costOf(q).bounded() {
		f.Direct = d
	}
	return f, nil
}

// compileDirect compiles a query to a Go function. It returns nil if the query is not direct.
func compileDirect(q *gojq.Query) Direct {
	if q == nil || len(q.FuncDefs) > 0 || q.Meta != nil || len(q.Imports) > 0 || len(q.Patterns) > 0 {
		return nil
	}
	if q.Term != nil {
		return directTerm(q.Term)
	}
	left, right := compileDirect(q.Left), compileDirect(q.Right)
	if left == nil || right == nil {
		return nil
	}
	switch q.Op {
	case gojq.OpPipe:
		return func(v any) (any, Answer) {
			v, a := left(v)
			if a != OneResult {
				return nil, a
			}
			return right(v)
		}
	case gojq.OpAlt:
		return func(v any) (any, Answer) {
			if w, a := left(v); a != NoResult && (a == unsure || truth(w)) {
				return w, a
			}
			return right(v)
		}
	case gojq.OpAnd:
		return logical(left, right, false)
	case gojq.OpOr:
		return logical(left, right, true)
	}
	if holds := comparisons[q.Op]; holds != nil {
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

// logical compiles and (decides is false) and or (decides is true). If the left result decides, right does not run.
func logical(left, right Direct, decides bool) Direct {
	return func(v any) (any, Answer) {
		l, a := left(v)
		if a != OneResult {
			return nil, a
		}
		if truth(l) == decides {
			return decides, OneResult
		}
		r, a := right(v)
		return truth(r), a
	}
}

func truth(v any) bool { return v != nil && v != false }

// comparisons maps each comparing operator to the results of gojq.Compare for which the operator is true.
var comparisons = map[gojq.Operator]func(int) bool{
	gojq.OpEq: func(c int) bool { return c == 0 },
	gojq.OpNe: func(c int) bool { return c != 0 },
	gojq.OpGt: func(c int) bool { return c > 0 },
	gojq.OpLt: func(c int) bool { return c < 0 },
	gojq.OpGe: func(c int) bool { return c >= 0 },
	gojq.OpLe: func(c int) bool { return c <= 0 },
}

// identity returns its input.
func identity(v any) (any, Answer) { return v, OneResult }

// directTerm compiles a term with its suffixes.
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
		return identity
	case gojq.TermTypeIndex:
		return indexed(identity, t.Index)
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeUnary, gojq.TermTypeString:
		return constant(t)
	case gojq.TermTypeFunc:
		return directCall(t.Func)
	case gojq.TermTypeQuery:
		return compileDirect(t.Query)
	case gojq.TermTypeIf:
		return directIf(t.If)
	case gojq.TermTypeObject:
		return directObject(t.Object)
	case gojq.TermTypeArray:
		return directArray(t.Array)
	}
	return nil
}

// constant compiles a literal. gojq evaluates the literal once, so that both have the same value.
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

// indexed compiles .name or .[n] on the result of d.
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
	i, ok := literalIndex(x.Start)
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
		case i >= int64(len(s)):
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
		return noResult
	case f.Name == "select" && len(f.Args) == 1:
		return branch(compileDirect(f.Args[0]), identity, noResult)
	}
	return nil
}

// noResult is the filter empty.
func noResult(any) (any, Answer) { return nil, NoResult }

func directIf(i *gojq.If) Direct {
	var otherwise Direct = identity
	switch {
	case len(i.Elif) > 0:
		otherwise = directIf(&gojq.If{Cond: i.Elif[0].Cond, Then: i.Elif[0].Then, Elif: i.Elif[1:], Else: i.Else})
	case i.Else != nil:
		otherwise = compileDirect(i.Else)
	}
	return branch(compileDirect(i.Cond), compileDirect(i.Then), otherwise)
}

// branch runs then or otherwise, as the result of test decides. It returns nil if one of the three is nil.
func branch(test, then, otherwise Direct) Direct {
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
		keys[i], values[i] = key, compileDirect(kv.Val)
		if kv.Val == nil { // {a} is {a: .a}
			values[i] = indexed(identity, &gojq.Index{Str: &gojq.String{Str: key}})
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

// directParts compiles the queries that are joined by commas, and appends them to before. It returns nil if one of them
// is not direct, or if there are none.
func directParts(q *gojq.Query, before []Direct) []Direct {
	if q != nil && q.Term == nil && q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		if before = directParts(q.Left, before); before == nil {
			return nil
		}
		return directParts(q.Right, before)
	}
	d := compileDirect(q)
	if d == nil {
		return nil
	}
	return append(before, d)
}
