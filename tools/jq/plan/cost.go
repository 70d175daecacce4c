package plan

import "github.com/itchyny/gojq"

const (
	maxCopies = 32  // copies of its input in the result of a direct filter, at most
	maxSteps  = 256 // steps of a direct filter for each value, at most
)

// cost bounds the size of the result of a direct filter and the time to compute it, for any value. Its unit is the size
// of the value, at least 64 bytes; a longer literal counts as several. The costs of the two sides of a pipe multiply:
// [.,.]|[.,.] makes four copies, and each further |[.,.] doubles them.
type cost struct {
	copies int // upper bound of the copies of the input in the result
	steps  int // upper bound of the terms that run and the copies that are compared
}

// bounded reports whether a filter of this cost is safe in this process.
func (c cost) bounded() bool { return c.copies <= maxCopies && c.steps <= maxSteps }

// then returns the cost of running next on the result of c.
func (c cost) then(next cost) cost {
	return cost{c.copies * next.copies, c.steps + c.copies*next.steps}.clipped()
}

// with returns the cost of both on the same input, with both results.
func (c cost) with(d cost) cost { return cost{c.copies + d.copies, c.steps + d.steps}.clipped() }

// either returns the cost of both on the same input, with one of the results.
func (c cost) either(d cost) cost {
	return cost{max(c.copies, d.copies), c.steps + d.steps}.clipped()
}

// clipped limits both numbers to 4,096, far above maxCopies and maxSteps, so that they never overflow.
func (c cost) clipped() cost {
	const most = 1 << 12
	return cost{min(c.copies, most), min(c.steps, most)}
}

func costOfText(s string) cost { return cost{1 + len(s)/64, 1} }

// costOf returns the cost of a query that compileDirect accepts.
func costOf(q *gojq.Query) cost {
	if q.Term != nil {
		return costOfTerm(q.Term)
	}
	left, right := costOf(q.Left), costOf(q.Right)
	switch q.Op {
	case gojq.OpPipe:
		return left.then(right)
	case gojq.OpComma:
		return left.with(right)
	case gojq.OpAlt:
		return left.either(right)
	}
	both := left.with(right) // and, or, and comparisons
	return cost{1, both.steps + both.copies}.clipped()
}

func costOfTerm(t *gojq.Term) cost {
	c := cost{1, 1}
	switch t.Type {
	case gojq.TermTypeNumber:
		c = costOfText(t.Number)
	case gojq.TermTypeUnary:
		c = costOfTerm(t.Unary.Term)
	case gojq.TermTypeString:
		c = costOfText(t.Str.Str)
	case gojq.TermTypeFunc:
		for _, arg := range t.Func.Args { // of select, which returns its input
			c.steps += costOf(arg).steps
		}
	case gojq.TermTypeQuery:
		c = costOf(t.Query)
	case gojq.TermTypeIf:
		c = costOf(t.If.Cond)
		c.copies = 1
		c = c.either(costOf(t.If.Then))
		for _, e := range t.If.Elif {
			c = c.either(cost{1, costOf(e.Cond).steps}).either(costOf(e.Then))
		}
		if t.If.Else != nil {
			c = c.either(costOf(t.If.Else))
		}
	case gojq.TermTypeArray:
		c = costOf(t.Array.Query)
	case gojq.TermTypeObject:
		keys := 0 // bytes
		for _, kv := range t.Object.KeyVals {
			keys += len(kv.Key) + 4
			if kv.KeyString != nil {
				keys += len(kv.KeyString.Str)
			}
			value := cost{1, 1} // {a} is {a: .a}
			if kv.Val != nil {
				value = costOf(kv.Val)
			}
			c = c.with(value)
		}
		c.copies += keys / 64
	}
	c.steps += 1 + len(t.SuffixList)
	return c.clipped()
}
