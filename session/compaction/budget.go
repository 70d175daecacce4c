package compaction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// BudgetError says that nothing more can be replaced.
type BudgetError struct {
	Budget int
	Least  int    // tokens that remain
	Left   []Left // of what, the largest first
}

// Left is a part of what remains, in tokens.
type Left struct {
	What   string
	Tokens int
}

func (e *BudgetError) Error() string {
	var parts []string
	for _, l := range e.Left {
		parts = append(parts, fmt.Sprintf("%s %d", l.What, l.Tokens))
	}
	return fmt.Sprintf("%s remain, over the budget of %d: %s; raise the budget, or let more go (--keep, --keep-tool)",
		content.Plural(int64(e.Least), "token", "tokens"), e.Budget, strings.Join(parts, ", "))
}

// overBudget says what remains.
func (c *compactor) overBudget() error {
	left := map[string]int{}
	results, order := c.results(), c.order()
	last := results[max(len(results)-c.stay(), 0):]
	e := &BudgetError{Budget: c.o.Budget}
	for i, cost := range c.cost {
		why := c.whyLeft(i, slices.Contains(last, i))
		if cost > leastOutput && slices.Contains(order, i) { // it was not tried: the rest is too much already
			cost, why = c.leastPointer(), "pointers"
		}
		if cost > 0 {
			left[why] += cost
			e.Least += cost
		}
	}
	if c.rest > 0 {
		left["system prompt, definitions of tools and what else is not counted"] = c.rest
		e.Least += c.rest
	}
	for _, what := range content.MostFrequent(left) {
		e.Left = append(e.Left, Left{what, left[what]})
	}
	return e
}

// whyLeft says why a block stays.
func (c *compactor) whyLeft(i int, last bool) string {
	b := &c.t.Blocks[i]
	_, cleared := c.t.Cleared(b.ID)
	switch {
	case b.Call:
		return "calls"
	case !b.Result():
		return "messages"
	case cleared:
		return "results that the client has cleared"
	case c.done[i]:
		return "pointers"
	case b.Error:
		return "results that failed"
	case last:
		return "the last results"
	case slices.Contains(c.o.KeepTool, b.Name):
		return "results of kept tools"
	case b.Other:
		return "results with images or unknown parts"
	}
	return "small results"
}

// results returns the blocks that are results, of those that are sent.
func (c *compactor) results() (all []int) {
	for i := range c.t.Blocks {
		if b := &c.t.Blocks[i]; b.Result() && b.Sent {
			all = append(all, i)
		}
	}
	return all
}

// stay returns how many of the last results stay. A call without a result needs the one before.
func (c *compactor) stay() int {
	open := map[string]bool{}
	for i := range c.t.Blocks {
		switch b := &c.t.Blocks[i]; {
		case b.Call && b.Sent:
			open[b.ID] = true
		case b.Result():
			delete(open, b.ID)
		}
	}
	stay := cmp.Or(c.o.Keep, keepLast)
	if len(open) > 0 {
		stay = max(stay, 1)
	}
	return max(stay, 0)
}

// mayGo reports whether a result may be replaced, unless it is one of the last.
func (c *compactor) mayGo(b *transcript.Block) bool {
	_, cleared := c.t.Cleared(b.ID)
	return b.Sent && !b.Error && !b.Other && !cleared && len(b.Texts) > 0 && b.Size() > 0 &&
		!slices.Contains(c.o.KeepTool, b.Name)
}
