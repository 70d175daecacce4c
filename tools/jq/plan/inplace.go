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
//	.p += e    e as $value | path(.p) as $path | add($owner; $path; $value), which appends to arrays, objects and texts
//	. + e      the same at the path []
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
	eachNode(reflect.ValueOf(q), func(node any) {
		if d, ok := node.(*gojq.FuncDef); ok {
			p.defined[d.Name] = true
			for _, arg := range d.Args {
				p.defined[arg] = true
			}
		}
	})
	if p.defined["path"] || p.defined["getpath"] || p.defined["tostring"] { // rewritten filters call these
		return q
	}
	return p.walk(q)
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
	with := withParts(t, p.walk)
	switch t.Type {
	case gojq.TermTypeFunc:
		return p.walkCall(with)
	case gojq.TermTypeReduce:
		r := *t.Reduce
		r.Query, r.Start = p.walk(r.Query), p.walk(r.Start)
		with.Reduce = &r
		return p.owned(with, r.Start, r.Patterns, &r.Update, nil)
	case gojq.TermTypeForeach:
		f := *t.Foreach
		f.Query, f.Start = p.walk(f.Query), p.walk(f.Start)
		with.Foreach = &f
		return p.owned(with, f.Start, f.Patterns, &f.Update, &f.Extract)
	}
	return with
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
	simple := true
	eachNode(reflect.ValueOf(ps), func(node any) {
		if o, ok := node.(*gojq.PatternObject); ok {
			simple = simple && o.KeyQuery == nil && (o.KeyString == nil || o.KeyString.Queries == nil)
		}
	})
	return simple
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
		return bind(p.leaving(q.Right), valueVar, change(addName, asQuery(list(nil)), variable(valueVar)))
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
		return p.updateIf(t, first)
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
		step := change(putName, variable(pathVar), variable(valueVar))
		return bind(p.leaving(v), valueVar, bind(p.leaving(path), pathVar, step))
	}
	return p.other(q)
}

func (p *inPlace) updateIf(t *gojq.Term, first bool) *gojq.Query {
	ok := true
	branch := func(q *gojq.Query) *gojq.Query {
		b := p.update(q, first)
		ok = ok && b != nil
		return b
	}
	with := withParts(t, func(q *gojq.Query) *gojq.Query { return q })
	i := with.If
	if ok = p.single(i.Cond); i.Else != nil {
		i.Else = branch(i.Else)
	}
	i.Then = branch(i.Then)
	for _, e := range i.Elif {
		ok = ok && p.single(e.Cond)
		e.Then = branch(e.Then)
	}
	if !ok {
		return nil
	}
	return asQuery(with)
}

// change returns the query that calls a function of the owner with a path and a value.
func change(name string, path, v *gojq.Query) *gojq.Query {
	return call(name, variable(ownerVar), path, v)
}

// place reports whether a query is one path of names and numbers.
func (p *inPlace) place(q *gojq.Query) bool {
	t := q.Term
	if t == nil || len(q.FuncDefs) > 0 || t.Type != gojq.TermTypeIndex || t.Index.IsSlice {
		return false
	}
	for _, s := range t.SuffixList {
		if s.Index == nil || s.Index.IsSlice {
			return false
		}
	}
	return all(indexQueries(t), p.single)
}

// assignments maps the operators that assign to those that compute the value.
var assignments = map[gojq.Operator]gojq.Operator{
	gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateMul: gojq.OpMul, gojq.OpUpdateDiv: gojq.OpDiv,
	gojq.OpUpdateMod: gojq.OpMod, gojq.OpUpdateAlt: gojq.OpAlt,
}

// assignment rewrites an assignment to a place. It evaluates in the order of gojq: the value, then the path.
func (p *inPlace) assignment(q *gojq.Query) *gojq.Query {
	path, at, v := call("path", q.Left), variable(pathVar), variable(valueVar)
	old := call("getpath", at)
	if q.Op == gojq.OpModify {
		if add := q.Right; add.Op == gojq.OpAdd && isPlain(add.Left, gojq.TermTypeIdentity) && p.single(add.Right) &&
			p.free(add.Right) {
			return bind(path, pathVar, bind(add.Right, valueVar, change(addName, at, v)))
		}
		if !p.single(q.Right) {
			return nil
		}
		return bind(path, pathVar, change(putName, at, piped(old, asQuery(bracketed(q.Right)))))
	}
	if !p.single(q.Right) {
		return nil
	}
	step := change(putName, at, v)
	switch op := assignments[q.Op]; op {
	case 0:
		if closed(q.Left.Term) { // gojq does not evaluate such a path, and setpath words the error
			path = constantPath(q.Left.Term)
		}
	case gojq.OpAdd:
		step = change(addName, at, v)
	default:
		step = change(putName, at, &gojq.Query{Left: old, Op: op, Right: v})
	}
	return bind(p.leaving(q.Right), valueVar, bind(path, pathVar, step))
}

// constantPath returns the path of a term of which all indices are constant.
func constantPath(t *gojq.Term) *gojq.Query {
	var keys *gojq.Query
	for _, s := range append([]*gojq.Suffix{{Index: t.Index}}, t.SuffixList...) {
		key := s.Index.Start
		if name, ok := keyOf(s.Index); ok {
			key = asQuery(&gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: name}})
		}
		keys = comma(keys, key)
	}
	return asQuery(list(keys))
}
