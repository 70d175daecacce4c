package plan

import "github.com/itchyny/gojq"

// steps removes steps from the left of a query: first the suffixes of its term, one by one, then the next stage of the
// pipe.
type steps struct {
	term  *gojq.Term     // the first term of the query if it is . or .key, else nil
	first *gojq.Index    // the key of .key, as if it were a suffix; nil once it is removed
	tail  []*gojq.Suffix // the remaining suffixes of term
	rest  *gojq.Query    // the stages of the pipe after term
	whole *gojq.Query    // the first stage, until a step is removed
}

func stepsOf(q *gojq.Query) *steps {
	if q == nil || len(q.FuncDefs) > 0 {
		return nil
	}
	if q.Term == nil {
		if q.Op != gojq.OpPipe || len(q.Patterns) > 0 {
			return nil
		}
		s := stepsOf(q.Left)
		if s == nil {
			return nil
		}
		s.rest = piped(s.rest, q.Right)
		return s.simplify()
	}
	s := &steps{whole: q}
	switch t := q.Term; {
	case !closed(t): // no step can be removed
	case t.Type == gojq.TermTypeIdentity:
		s.term, s.tail = t, t.SuffixList
	case t.Type == gojq.TermTypeIndex:
		s.term, s.first, s.tail = t, t.Index, t.SuffixList
	}
	return s.simplify()
}

// closed reports whether all brackets of a term hold only constants. The query in .[][.a] reads the input of the whole
// term, so that its steps cannot be separated.
func closed(t *gojq.Term) bool {
	indices := []*gojq.Index{t.Index}
	for _, s := range t.SuffixList {
		indices = append(indices, s.Index)
	}
	for _, x := range indices {
		if x != nil && (x.Str != nil && x.Str.Queries != nil || !constantOrNone(x.Start) || !constantOrNone(x.End)) {
			return false
		}
	}
	return true
}

// simplify removes each . before a pipe.
func (s *steps) simplify() *steps {
	for s.term != nil && s.first == nil && len(s.tail) == 0 && s.rest != nil {
		next := stepsOf(s.rest)
		if next == nil {
			return s
		}
		*s = *next
	}
	return s
}

// index returns the next step if it is an index, else nil.
func (s *steps) index() *gojq.Index {
	switch {
	case s.term == nil:
		return nil
	case s.first != nil:
		return s.first
	case len(s.tail) > 0:
		return s.tail[0].Index
	}
	return nil
}

// iterates reports whether the next step is [].
func (s *steps) iterates() bool { return s.first == nil && len(s.tail) > 0 && s.tail[0].Iter }

// identity reports whether no step is left.
func (s *steps) identity() bool {
	return s.term != nil && s.first == nil && len(s.tail) == 0 && s.rest == nil
}

// next removes a step and the ? after it. It returns false if no step is left.
func (s *steps) next() bool {
	if s.first != nil {
		s.first = nil
	} else {
		s.tail = s.tail[1:]
	}
	for len(s.tail) > 0 && s.tail[0].Optional {
		s.tail = s.tail[1:]
	}
	s.whole = nil
	s.simplify()
	return !s.identity()
}

// query returns the remaining steps as a query, nil if there are none.
func (s *steps) query() *gojq.Query {
	if s.identity() {
		return nil
	}
	q := s.whole
	if q == nil {
		q = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: s.tail}}
		if s.first != nil {
			q.Term = &gojq.Term{Type: gojq.TermTypeIndex, Index: s.first, SuffixList: s.tail}
		}
	}
	return piped(q, s.rest)
}
