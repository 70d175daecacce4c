package plan

import (
	"reflect"
	"strings"

	"github.com/itchyny/gojq"
)

// # Values that are built step by step
//
// gojq copies an array or object for each assignment and each +, so that a reduce of n steps takes the time of n². A
// reduce whose update consists of such steps is rewritten: the functions of an owner take the place of the steps. An
// array or object that the owner has copied once is changed in place from then on.
//
//	.p = e     e as $value | path(.p) as $path | put($owner; $path; $value)
//	.p |= f    path(.p) as $path | put($owner; $path; getpath($path) | f)
//	.p += e    the same with getpath($path) + e; arrays, objects and texts are appended to: grow
//	. + e      likewise
//
// gojq still computes all paths, values and errors. The update may have such steps in a pipe, behind if and select, and
// with variables. A value may be changed only while nothing else holds it. Therefore:
//
//   - Each of its other filters must have exactly one result, as single knows it. gojq returns to a filter for further
//     results, and would find the value changed.
//   - Where the result of a filter depends on the value and is an array or object, leave ends the ownership.
//
// A foreach is rewritten only with a filter for its results, which leave the same way.

// inPlace is a rewriting of one filter.
type inPlace struct {
	defined map[string]bool // functions that the filter defines, and their parameters
	changes bool            // the update that is rewritten has a step that changes the value
	scalar  bool            // the value is a number or literal, and + makes no copy of it
}

// changingInPlace rewrites a query so that it changes values in place where that is safe. The results stay the same.
func changingInPlace(q *gojq.Query) *gojq.Query {
	p := &inPlace{defined: map[string]bool{}}
	p.addDefined(reflect.ValueOf(q))
	if p.defined["path"] || p.defined["getpath"] || p.defined["tostring"] { // rewritten filters call these
		return q
	}
	return p.walk(q)
}

// addDefined adds the names of the functions in a part of a filter.
func (p *inPlace) addDefined(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			p.addDefined(v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if d, ok := v.Interface().(*gojq.FuncDef); ok {
			p.defined[d.Name] = true
			for _, arg := range d.Args {
				p.defined[arg] = true
			}
		}
		for i := range v.Elem().NumField() {
			p.addDefined(v.Elem().Field(i))
		}
	}
}

// walk rewrites the parts of a query. It skips parts that may belong to a path, because errors of paths quote them:
// the left side of assignments, the arguments of most functions, and definitions.
func (p *inPlace) walk(q *gojq.Query) *gojq.Query {
	if q == nil {
		return nil
	}
	with := *q
	if q.Term != nil {
		with.Term = p.walkTerm(q.Term)
		return &with
	}
	if with.Right = p.walk(q.Right); q.Op < gojq.OpAssign {
		with.Left = p.walk(q.Left)
	}
	return &with
}

func (p *inPlace) walkTerm(t *gojq.Term) *gojq.Term {
	with := *t
	switch t.Type {
	case gojq.TermTypeQuery:
		with.Query = p.walk(t.Query)
	case gojq.TermTypeArray:
		with.Array = &gojq.Array{Query: p.walk(t.Array.Query)}
	case gojq.TermTypeObject:
		with.Object = &gojq.Object{}
		for _, kv := range t.Object.KeyVals {
			member := *kv
			member.Val = p.walk(kv.Val)
			with.Object.KeyVals = append(with.Object.KeyVals, &member)
		}
	case gojq.TermTypeIf:
		with.If = &gojq.If{Cond: p.walk(t.If.Cond), Then: p.walk(t.If.Then), Else: p.walk(t.If.Else)}
		for _, e := range t.If.Elif {
			with.If.Elif = append(with.If.Elif, &gojq.IfElif{Cond: p.walk(e.Cond), Then: p.walk(e.Then)})
		}
	case gojq.TermTypeFunc:
		return p.walkCall(&with)
	case gojq.TermTypeReduce:
		r := *t.Reduce
		r.Query, r.Start = p.walk(r.Query), p.walk(r.Start)
		with.Reduce = &r
		return p.owned(&with, r.Start, r.Patterns, &r.Update, nil)
	case gojq.TermTypeForeach:
		f := *t.Foreach
		f.Query, f.Start = p.walk(f.Query), p.walk(f.Start)
		with.Foreach = &f
		return p.owned(&with, f.Start, f.Patterns, &f.Update, &f.Extract)
	}
	return &with
}

func (p *inPlace) walkCall(t *gojq.Term) *gojq.Term {
	f := *t.Func
	switch {
	case p.defined[f.Name]:
		return t
	case f.Name == "INDEX" && (len(f.Args) == 1 || len(f.Args) == 2):
		return p.walkTerm(indexReduce(t))
	case f.Name == "map" || f.Name == "select" || f.Name == "add" || strings.HasSuffix(f.Name, "_by"):
		args := f.Args
		f.Args = nil
		for _, arg := range args {
			f.Args = append(f.Args, p.walk(arg))
		}
		t.Func = &f
	}
	return t
}

// indexReduce returns the definition of INDEX with its arguments.
func indexReduce(t *gojq.Term) *gojq.Term {
	each := iterated()
	if len(t.Func.Args) == 2 {
		each = bracketed(t.Func.Args[0])
	}
	row := variable(rowVar)
	by := t.Func.Args[len(t.Func.Args)-1]
	key := piped(row, piped(asQuery(bracketed(by)), call("tostring")))
	place := asQuery(&gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Start: key}})
	with := *t
	with.Type, with.Func, with.Reduce = gojq.TermTypeReduce, nil, &gojq.Reduce{
		Query: asQuery(each), Patterns: named(rowVar),
		Start:  asQuery(&gojq.Term{Type: gojq.TermTypeObject, Object: &gojq.Object{}}),
		Update: &gojq.Query{Left: place, Op: gojq.OpAssign, Right: row},
	}
	return &with
}

func iterated() *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{{Iter: true}}}
}

func bracketed(q *gojq.Query) *gojq.Term { return &gojq.Term{Type: gojq.TermTypeQuery, Query: q} }

func variable(name string) *gojq.Query { return call(name) }

func named(name string) []*gojq.Pattern { return []*gojq.Pattern{{Name: name}} }

// bind returns value as $name | body.
func bind(value *gojq.Query, name string, body *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: value, Op: gojq.OpPipe, Patterns: named(name), Right: body}
}

// owned returns the term of a reduce or foreach with an owner, if its update can be rewritten.
func (p *inPlace) owned(t *gojq.Term, start *gojq.Query, ps []*gojq.Pattern, update, extract **gojq.Query) *gojq.Term {
	u := &inPlace{defined: p.defined, scalar: isScalar(start)}
	q := u.update(*update, true)
	if q == nil || !u.changes || len(ps) > 1 || !simplePatterns(ps) || extract != nil && *extract == nil {
		*update = p.walk(*update)
		return t
	}
	*update = q
	if extract != nil {
		*extract = u.leaving(*extract)
	}
	bare := *t
	bare.SuffixList = nil
	with := bracketed(bind(call(ownerName), ownerVar, asQuery(&bare)))
	with.SuffixList = t.SuffixList
	return with
}

func isScalar(q *gojq.Query) bool {
	return isPlain(q, gojq.TermTypeNumber) || isPlain(q, gojq.TermTypeTrue) || isPlain(q, gojq.TermTypeFalse)
}

// simplePatterns reports whether patterns compute no keys.
func simplePatterns(ps []*gojq.Pattern) bool {
	for _, p := range ps {
		if !simplePatterns(p.Array) {
			return false
		}
		for _, o := range p.Object {
			if o.KeyQuery != nil || o.KeyString != nil && o.KeyString.Queries != nil ||
				o.Val != nil && !simplePatterns([]*gojq.Pattern{o.Val}) {
				return false
			}
		}
	}
	return true
}

// update rewrites an update, nil if that is not safe. Only an update of which nothing has run yet, at its beginning,
// may have no result.
func (p *inPlace) update(q *gojq.Query, first bool) *gojq.Query {
	if q == nil || len(q.FuncDefs) > 0 {
		return nil
	}
	if q.Term != nil {
		return p.updateTerm(q, first)
	}
	switch {
	case q.Op == gojq.OpPipe && len(q.Patterns) > 0:
		right := p.update(q.Right, first)
		if right == nil || len(q.Patterns) > 1 || !simplePatterns(q.Patterns) || !p.single(q.Left) {
			return nil
		}
		return &gojq.Query{Left: p.leaving(q.Left), Op: gojq.OpPipe, Patterns: q.Patterns, Right: right}
	case q.Op == gojq.OpPipe:
		before := p.changes
		left := p.update(q.Left, first)
		right := p.update(q.Right, first && p.changes == before)
		if left == nil || right == nil {
			return nil
		}
		return piped(left, right)
	case q.Op == gojq.OpAdd && isPlain(q.Left, gojq.TermTypeIdentity) && !p.scalar && p.single(q.Right):
		p.changes = true
		return bind(p.leaving(q.Right), valueVar, grown(asQuery(&gojq.Term{
			Type: gojq.TermTypeArray, Array: &gojq.Array{},
		}), q.Left))
	case q.Op >= gojq.OpAssign && p.place(q.Left):
		if step := p.assignment(q); step != nil {
			p.changes = true
			return step
		}
	}
	return p.other(q)
}

// other returns a filter that gives a new value, nil if it may have none or several.
func (p *inPlace) other(q *gojq.Query) *gojq.Query {
	if p.single(q) {
		return q
	}
	return nil
}

func (p *inPlace) updateTerm(q *gojq.Query, first bool) *gojq.Query {
	t := plainTerm(q)
	switch {
	case t == nil:
	case t.Type == gojq.TermTypeQuery:
		if inner := p.update(t.Query, first); inner != nil {
			return asQuery(bracketed(inner))
		}
		return nil
	case t.Type == gojq.TermTypeIf:
		return p.updateIf(t.If, first)
	case isCall(q, "select", 1) && !p.defined["select"]:
		if first && p.single(t.Func.Args[0]) {
			return q
		}
		return nil
	case isCall(q, "setpath", 2) && !p.defined["setpath"]:
		path, v := t.Func.Args[0], t.Func.Args[1]
		if !p.single(path) || !p.single(v) {
			return nil
		}
		p.changes = true
		return bind(p.leaving(v), valueVar, bind(p.leaving(path), pathVar, put(variable(valueVar))))
	}
	return p.other(q)
}

func (p *inPlace) updateIf(i *gojq.If, first bool) *gojq.Query {
	with := &gojq.If{Cond: i.Cond}
	ok := p.single(i.Cond)
	branch := func(q *gojq.Query) *gojq.Query {
		b := p.update(q, first)
		ok = ok && b != nil
		return b
	}
	with.Then = branch(i.Then)
	for _, e := range i.Elif {
		ok = ok && p.single(e.Cond)
		with.Elif = append(with.Elif, &gojq.IfElif{Cond: e.Cond, Then: branch(e.Then)})
	}
	if i.Else != nil {
		with.Else = branch(i.Else)
	}
	if !ok {
		return nil
	}
	return asQuery(&gojq.Term{Type: gojq.TermTypeIf, If: with})
}

// put returns the query that puts a value at the path of the variable.
func put(v *gojq.Query) *gojq.Query { return call(putName, variable(ownerVar), variable(pathVar), v) }

// grown returns the query that adds the value of the variable to the one at a path, which old gives.
func grown(path, old *gojq.Query) *gojq.Query {
	v := variable(valueVar)
	sum := &gojq.Query{Left: old, Op: gojq.OpAdd, Right: v}
	if old.Term.Type != gojq.TermTypeIdentity {
		sum = put(sum)
	}
	return asQuery(&gojq.Term{Type: gojq.TermTypeIf, If: &gojq.If{
		Cond: call(growsName, path, v), Then: call(growName, variable(ownerVar), path, v), Else: sum,
	}})
}

// place reports whether a query is one path of names and numbers.
func (p *inPlace) place(q *gojq.Query) bool {
	t := q.Term
	if t == nil || len(q.FuncDefs) > 0 || t.Type != gojq.TermTypeIndex || t.Index.IsSlice || !p.singleIndex(t.Index) {
		return false
	}
	for _, s := range t.SuffixList {
		if s.Index == nil || s.Index.IsSlice || !p.singleIndex(s.Index) {
			return false
		}
	}
	return true
}

func (p *inPlace) singleIndex(x *gojq.Index) bool {
	return p.singleText(x.Str) &&
		(x.Start == nil || p.single(x.Start)) && (x.End == nil || p.single(x.End))
}

// assignments maps the operators that assign to those that compute the value.
var assignments = map[gojq.Operator]gojq.Operator{
	gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateMul: gojq.OpMul, gojq.OpUpdateDiv: gojq.OpDiv,
	gojq.OpUpdateMod: gojq.OpMod, gojq.OpUpdateAlt: gojq.OpAlt,
}

// assignment rewrites an assignment to a place. It evaluates in the order of gojq: the value, then the path.
func (p *inPlace) assignment(q *gojq.Query) *gojq.Query {
	path, old := call("path", q.Left), call("getpath", variable(pathVar))
	if q.Op == gojq.OpModify {
		if add := q.Right; add.Op == gojq.OpAdd && isPlain(add.Left, gojq.TermTypeIdentity) && p.single(add.Right) &&
			p.free(add.Right) {
			return bind(path, pathVar, bind(add.Right, valueVar, grown(variable(pathVar), old)))
		}
		if !p.single(q.Right) {
			return nil
		}
		return bind(path, pathVar, put(piped(old, asQuery(bracketed(q.Right)))))
	}
	if !p.single(q.Right) {
		return nil
	}
	var step *gojq.Query
	switch op := assignments[q.Op]; op {
	case 0:
		if closed(q.Left.Term) { // gojq does not evaluate such a path, and setpath words the error
			path = constantPath(q.Left.Term)
		}
		step = put(variable(valueVar))
	case gojq.OpAdd:
		step = grown(variable(pathVar), old)
	default:
		step = put(&gojq.Query{Left: old, Op: op, Right: variable(valueVar)})
	}
	return bind(p.leaving(q.Right), valueVar, bind(path, pathVar, step))
}

// constantPath returns the path of a term of which all indices are constant.
func constantPath(t *gojq.Term) *gojq.Query {
	var keys *gojq.Query
	for _, s := range append([]*gojq.Suffix{{Index: t.Index}}, t.SuffixList...) {
		x := s.Index
		key := x.Start
		if name, ok := keyOf(x); ok {
			key = asQuery(&gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: name}})
		}
		if keys != nil {
			key = &gojq.Query{Left: keys, Op: gojq.OpComma, Right: key}
		}
		keys = key
	}
	return asQuery(&gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: keys}})
}
