package plan

import (
	"cmp"
	"strings"

	"github.com/itchyny/gojq"
)

// Selection is the first chain of select in a filter: select(a and b) | select(c) has three predicates.
type Selection struct {
	Before     string // gives the values that are selected: "." or what precedes the chain
	Predicates []Predicate
	Last       bool // nothing follows the chain
}

// Predicate is one condition of a selection.
type Predicate struct {
	Text   string
	Fields [][]string // paths of the value's members that it reads: .a.b is ["a", "b"]
}

// SelectionOf returns the first selection of a filter, ok false if it has none that runs on the values that the filter
// before it gives: within map(…) and […] too, also with length after them.
func SelectionOf(filter string) (s Selection, ok bool) {
	q, err := gojq.Parse(filter)
	if err != nil {
		return s, false
	}
	stages := stagesOf(q, true)
	var before []string
	for i := 0; i < len(stages); i++ {
		if conditionOf(stages[i]) == nil {
			if before = append(before, stages[i].String()); definesNames(stages[i]) {
				return s, false
			}
			continue
		}
		for ; i < len(stages) && conditionOf(stages[i]) != nil; i++ {
			s.Predicates = appendPredicates(s.Predicates, conditionOf(stages[i]))
		}
		s.Before, s.Last = cmp.Or(strings.Join(before, " | "), "."), i == len(stages)
		return s, true
	}
	return s, false
}

// stagesOf divides a filter at its pipes. map(f) and [f] at its end, perhaps with length after them, are .[] | f and f.
func stagesOf(q *gojq.Query, last bool) []*gojq.Query {
	switch {
	case q.Op == gojq.OpPipe && len(q.FuncDefs) == 0 && len(q.Patterns) == 0:
		return append(stagesOf(q.Left, last && isCall(q.Right, "length", 0)), stagesOf(q.Right, last)...)
	case last && isCall(q, "map", 1):
		return append([]*gojq.Query{asQuery(iterated())}, stagesOf(q.Term.Func.Args[0], false)...)
	case last && isPlain(q, gojq.TermTypeArray) && q.Term.Array.Query != nil:
		return stagesOf(q.Term.Array.Query, false)
	case isPlain(q, gojq.TermTypeQuery):
		return stagesOf(q.Term.Query, last)
	}
	return []*gojq.Query{q}
}

// definesNames reports whether a stage binds variables or defines functions, on which later stages may rest.
func definesNames(q *gojq.Query) bool {
	text := q.String()
	return strings.Contains(text, " as ") || strings.Contains(text, "def ")
}

// conditionOf returns the condition of select(…), nil for another stage.
func conditionOf(q *gojq.Query) *gojq.Query {
	if isCall(q, "select", 1) {
		return q.Term.Func.Args[0]
	}
	return nil
}

// appendPredicates divides a condition at its "and".
func appendPredicates(list []Predicate, q *gojq.Query) []Predicate {
	switch {
	case q.Op == gojq.OpAnd && len(q.FuncDefs) == 0:
		return appendPredicates(appendPredicates(list, q.Left), q.Right)
	case isPlain(q, gojq.TermTypeQuery):
		return appendPredicates(list, q.Term.Query)
	}
	return append(list, Predicate{Text: q.String(), Fields: fieldsRead(nil, q)})
}

// fieldsRead adds the paths of the members that a query reads from its own input.
func fieldsRead(paths [][]string, q *gojq.Query) [][]string {
	switch {
	case len(q.FuncDefs) > 0:
	case q.Op == gojq.OpPipe:
		return fieldsRead(paths, q.Left)
	case q.Left != nil:
		return fieldsRead(fieldsRead(paths, q.Left), q.Right)
	case q.Term == nil:
	case q.Term.Type == gojq.TermTypeIndex:
		if path := memberPath(q.Term); path != nil {
			return append(paths, path)
		}
	case q.Term.Type == gojq.TermTypeQuery:
		return fieldsRead(paths, q.Term.Query)
	case isCall(q, "has", 1):
		if name, ok := literal(q.Term.Func.Args[0]); ok {
			return append(paths, []string{name})
		}
	}
	return paths
}

// memberPath returns the names of .a.b; nil if something else than names is in it.
func memberPath(t *gojq.Term) (path []string) {
	name, ok := keyOf(t.Index)
	if !ok {
		return nil
	}
	path = append(path, name)
	for _, s := range t.SuffixList {
		if s.Index == nil {
			break // .a[] and .a? read a too
		}
		if name, ok = keyOf(s.Index); !ok {
			break
		}
		path = append(path, name)
	}
	return path
}
