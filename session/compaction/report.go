package compaction

import (
	"fmt"
	"math"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// credible is the least share of the lower bound of a count that a report is believed with.
const credible = 0.9

// compareReport compares what was counted with what the client reported of its last request. The rest of the report is
// its system prompt and its definitions of tools, which every request has. If more was counted than it reported, the
// counts are estimates that are too high: all of them are scaled down. A report that the error of the counts does not
// explain is not of this text, and is ignored.
func (c *compactor) compareReport() {
	if c.usage == 0 {
		return
	}
	counted := 0
	for i := range c.t.Reported {
		counted += c.was[i]
	}
	if float64(c.usage) < credible*float64(c.low(counted)) {
		c.ignored = fmt.Sprintf("the session reports %s for its last request, but the text of it has about %d: the report"+
			" is ignored", content.Plural(int64(c.usage), "token", "tokens"), counted)
		c.usage = 0
		return
	}
	c.rest = max(c.usage-counted, 0)
	if counted <= c.usage {
		return
	}
	c.scale = float64(c.usage) / float64(counted)
	for i := range c.cost {
		c.cost[i], c.was[i] = c.scaled(c.cost[i]), c.scaled(c.was[i])
	}
}

func (c *compactor) scaled(tokens int) int { return int(math.Ceil(float64(tokens) * c.scale)) }

// count returns the tokens of a text as costs are counted.
func (c *compactor) count(text string) int { return c.scaled(c.o.Count(text)) }

// sum returns the tokens of the next request, as estimated.
func (c *compactor) sum() int {
	sum := c.rest
	for _, cost := range c.cost {
		sum += cost
	}
	return sum
}

// most returns how many tokens the next request has at most. A report is exact: what stood in its request counts with
// an error only if it was replaced since.
func (c *compactor) most() int {
	most := c.usage
	for i, cost := range c.cost {
		switch {
		case i >= c.t.Reported || c.usage == 0:
			most += c.high(cost) + c.encrypted(i)
		case cost != c.was[i]:
			most += c.high(cost) - c.low(c.was[i])
		}
	}
	return max(most+c.restOfAnswer(), c.total) // scaled costs are rounded up
}

func (c *compactor) high(tokens int) int { return int(math.Ceil(float64(tokens) * (1 + c.o.Margin))) }
func (c *compactor) low(tokens int) int  { return int(float64(tokens) * (1 - c.o.Margin)) }

// encrypted returns the most tokens that the encrypted text of a block has: a token is a byte at least.
func (c *compactor) encrypted(i int) int {
	if b := &c.t.Blocks[i]; b.Sent {
		return b.Encrypted
	}
	return 0
}

// restOfAnswer returns what the client reported of its answer beyond what most adds of its blocks. It may report less
// than they have, because it writes a line when only a part has arrived.
func (c *compactor) restOfAnswer() int {
	if c.usage == 0 {
		return 0
	}
	seen := 0
	for i := c.t.Reported; i < len(c.cost) && c.t.Blocks[i].Role == transcript.Assistant; i++ {
		seen += c.high(c.cost[i]) + c.encrypted(i)
	}
	return max(c.t.Output-seen, 0)
}

// note says what the figures leave out; "" if nothing.
func (c *compactor) note() string {
	if c.ignored != "" {
		return c.ignored
	}
	if c.usage == 0 && (c.t.Format == transcript.Claude || c.t.Format == transcript.Codex) {
		return "the session reports no usage: its system prompt and definitions of tools are not counted"
	}
	return ""
}

// doubt says why the next request is not known to fit the budget; "" if it is.
func (c *compactor) doubt() string {
	t := c.t
	for i := range t.Blocks {
		if b := &t.Blocks[i]; b.Sent && b.Binary != "" && (i >= t.Reported || c.usage == 0) {
			return fmt.Sprintf("line %d has files or binary data (%s), which are not counted", t.Number(b.Line, b.At),
				b.Binary)
		}
	}
	if most := c.most(); most > c.o.Budget {
		return fmt.Sprintf("it may have up to %d tokens, because counts are estimated or text is encrypted", most)
	}
	return ""
}

// reportedWhole counts a block in the reported request as it was before a swap, if the request is older than the swap.
func (c *compactor) reportedWhole(i int, s Swap) {
	if c.usage == 0 || i >= c.t.Reported || s.Lines <= c.t.ReportLine {
		return
	}
	if text, err := readSame(c.m, s, c.keeper); err == nil {
		c.was[i] = c.o.Count(string(text))
	}
}
