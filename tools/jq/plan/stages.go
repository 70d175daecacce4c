package plan

import (
	"slices"

	"github.com/itchyny/gojq"
)

// stage is a part of a pipe: a term without suffixes, or one suffix of a term.
type stage struct {
	term *gojq.Term
	tail []*gojq.Suffix // the suffixes of the same term that follow
}

// stagesIn divides a query at its pipes, brackets and suffixes. A part that binds or defines names, joins by operators
// or has brackets that compute an index is one stage.
func stagesIn(q *gojq.Query) (all []stage) {
	switch {
	case q == nil:
		return nil
	case q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0 || len(q.Patterns) > 0 ||
		q.Term == nil && q.Op != gojq.OpPipe || q.Term != nil && !closed(q.Term):
		return []stage{{term: bracketed(q)}}
	case q.Term == nil:
		return append(stagesIn(q.Left), stagesIn(q.Right)...)
	}
	t := q.Term
	if t.Type == gojq.TermTypeQuery && len(t.SuffixList) == 0 {
		return stagesIn(t.Query)
	}
	head := *t
	head.SuffixList = nil
	suffixes := t.SuffixList
	if head.Type == gojq.TermTypeIndex {
		suffixes = append([]*gojq.Suffix{{Index: head.Index}}, suffixes...)
	} else if head.Type != gojq.TermTypeIdentity {
		all = append(all, stage{&head, suffixes})
	}
	for i, s := range suffixes {
		all = append(all, stage{&gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{s}}, suffixes[i+1:]})
	}
	return all
}

// closed reports whether all brackets of a term hold only constants. The query in .[][.a] reads the input of the whole
// term, so that its steps cannot be separated.
func closed(t *gojq.Term) bool {
	return all(indexQueries(t), constant)
}

// iterates reports whether a stage is [].
func (s stage) iterates() bool { return len(s.term.SuffixList) == 1 && s.term.SuffixList[0].Iter }

// rest returns a query of t, which replaces the stage s and n of the suffixes after it, and of the stages that remain.
func rest(t *gojq.Term, s stage, n int, after []stage) *gojq.Query {
	with := *t
	with.SuffixList = slices.Concat(t.SuffixList, s.tail[n:])
	q := asQuery(&with)
	for i := len(s.tail); i < len(after); {
		next := *after[i].term
		next.SuffixList = slices.Concat(next.SuffixList, after[i].tail)
		q = piped(q, asQuery(&next))
		i += 1 + len(after[i].tail)
	}
	return q
}

// joined returns the query of stages, nil if there are none.
func joined(all []stage) *gojq.Query {
	if len(all) == 0 {
		return nil
	}
	return rest(all[0].term, all[0], 0, all[1:])
}
