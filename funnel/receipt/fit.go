package receipt

import (
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds"
)

// cost returns the tokens of lines, each with its newline.
func (d *Draft) cost(lines []string) (sum int) {
	for _, l := range lines {
		n, ok := d.costs[l]
		if !ok {
			n = d.count(l + "\n")
			d.costs[l] = n
		}
		sum += n
	}
	return sum
}

// contentCost returns the tokens of a choice.
func (d *Draft) contentCost(c choice) int {
	return d.saysCost(c) + d.shapeCost(c) + d.bodyCost(c) + d.edgesCost(c) + d.cost(d.savedLines(c))
}

func (d *Draft) edgesCost(c choice) int { return d.cost(d.edgeLines(c)) }
func (d *Draft) saysCost(c choice) int  { return d.cost(d.saysLines(c)) }
func (d *Draft) shapeCost(c choice) int { return d.cost(d.shapeLines(c)) }
func (d *Draft) bodyCost(c choice) int  { return d.cost(d.bodyLines(c)) }

// Fit returns the text of the receipt and its tokens: at most ceiling, unless the shortest frame takes more. It chooses
// what the receipt shows by the sum of the tokens of single lines, which is close to the tokens of the whole text, and
// counts the whole text at the end.
func (d *Draft) Fit(ceiling int) (receipt string, tokens int) {
	level := d.level(ceiling)
	top, bottom := d.frame(level)
	room := ceiling - d.cost(top) - d.cost(bottom)
	c := choice{shape: -1}
	if room > 0 {
		c = d.grow(d.leastOfEach(c, room), room)
		for c.body > 0 && strings.HasSuffix(d.body[c.body-1], ":") {
			c.body-- // a heading without its lines
		}
	}
	for {
		receipt = d.render(level, c)
		tokens = d.count(receipt)
		if tokens <= ceiling {
			return receipt, tokens
		}
		if !c.shrink() {
			if level == frameLevels-1 {
				return receipt, tokens
			}
			level++
		}
	}
}

// level returns the lowest level at which the frame leaves a quarter of the ceiling, else the lowest that fits at all.
// Level 0 must leave two thirds, because the content is worth more than what a record is.
func (d *Draft) level(ceiling int) int {
	fits := frameLevels - 1
	for level := frameLevels - 1; level >= 0; level-- {
		top, bottom := d.frame(level)
		if d.cost(top)+d.cost(bottom) <= ceiling {
			fits = level
		}
	}
	for level := fits; level < frameLevels; level++ {
		top, bottom := d.frame(level)
		cost := d.cost(top) + d.cost(bottom)
		if level > 0 && 4*cost <= 3*ceiling || 3*cost <= ceiling {
			return level
		}
	}
	return fits
}

// leastOfEach chooses the smallest form of every part that is not empty, most needed first. It stops at the first part
// that does not fit.
func (d *Draft) leastOfEach(c choice, room int) choice {
	try := func(change func(*choice, int), widths ...int) bool {
		for _, w := range widths {
			next := c
			change(&next, w)
			if d.contentCost(next) <= room {
				c = next
				return true
			}
		}
		return false
	}
	c, all := d.leastSays(c, room)
	if !all {
		return c
	}
	if n := len(d.shapes); n > 0 {
		// The least detailed one, and a better one at once where its share allows it: the shape is worth more than the
		// edges.
		if !try(func(c *choice, w int) { c.shape, c.shapeWidth = n-1, w }, 300, 200, 120, 80, text.MinWidth) {
			return c
		}
		share := int(kinds.Of(d.kind).Shares.Shape * float64(room))
		c = d.moreShape(c, room, max(share, min(room*3/4, 64)))
	}
	if len(d.head) > 0 && !try(func(c *choice, w int) { c.head, c.width = 1, w }, 100, 70, text.MinWidth) {
		return c
	}
	if d.tailRoom(c) > 0 && !try(func(c *choice, w int) { c.tail = 1 }, 0) {
		return c
	}
	if len(d.body) > 0 && !try(func(c *choice, w int) { c.body, c.bodyWidth = 1, w }, 200, 120, 80, text.MinWidth) {
		return c
	}
	if d.saved != "" {
		try(func(c *choice, _ int) { c.saved = true }, 0)
	}
	return c
}

// leastSays chooses the smallest form of the findings: first the lines that say where the text breaks off, without
// which nothing else is shown, then as many of the other lines as fit into half of the room, at least one. all is false
// if nothing else has room.
func (d *Draft) leastSays(c choice, room int) (_ choice, all bool) {
	if d.cutLines > 0 {
		c.says = d.cutLines
		for _, form := range []struct{ width, lead, room int }{
			{240, 240, room / 2}, {160, 200, room * 3 / 5}, {100, 200, room * 3 / 5}, {80, 160, room * 2 / 3}, {60, 160, room},
			{text.MinWidth, 120, room}, {text.MinWidth, text.MinWidth, room},
		} {
			if c.saysWidth, c.lead = form.width, form.lead; d.saysCost(c) <= form.room {
				all = true
				break
			}
		}
		for !all && c.says > 0 && d.saysCost(c) > room {
			c.says--
		}
		if !all {
			return c, false
		}
	}
	if c.says == len(d.says) {
		return c, true
	}
	if c.says == 0 {
		c.says = 1
		for _, w := range []int{240, 160, 100, 70, text.MinWidth} {
			if c.saysWidth, c.lead = w, w; d.saysCost(c) <= room {
				all = true
				break
			}
		}
		if !all {
			c.says = 0
			return c, false
		}
	}
	if c.says == d.cutLines {
		if c.says++; d.saysCost(c) > room {
			c.says--
			return c, false
		}
	}
	// Use narrower lines, down to a width that can still be understood, if more of them fit then.
	best := c
	for _, w := range []int{240, 160, 100} {
		next := c
		next.saysWidth = min(next.saysWidth, w)
		for next.says < len(d.says) {
			more := next
			if more.says++; d.saysCost(more) > room/2 {
				break
			}
			next = more
		}
		if next.says > best.says {
			best = next
		}
	}
	return best, true
}

// tailRoom returns how many lines of the tail are not in the head already.
func (d *Draft) tailRoom(c choice) int {
	return int(min(int64(len(d.tail)), d.lines-d.before-int64(c.head)))
}

// widths that a line may be clipped to, widest first.
var widths = []int{2000, 1200, 800, 500, 360, 260, 200, 160, 120, 100, 80, 60, text.MinWidth}

// grow distributes the room that is left. The first round obeys the shares of the kind: for the findings, for the
// shape, and, of what these leave, for the body; head and tail get the rest. Then the parts that have more get what is
// left.
func (d *Draft) grow(c choice, room int) choice {
	s := kinds.Of(d.kind).Shares
	share := func(of float64, all int) int { return int(of * float64(all)) }
	c = d.moreSays(c, room, share(s.Says, room), 240)
	c = d.moreShape(c, room, share(s.Shape, room))
	rest := room - d.contentCost(c) + d.bodyCost(c) + d.edgesCost(c)
	c = d.moreBody(c, room, share(s.Body, rest), 240)
	c = d.moreEdges(c, room)
	c = d.moreBody(c, room, room, 400)
	c = d.moreSays(c, room, room, 400)
	c = d.moreShape(c, room, room)
	c = d.moreEdges(c, room)
	c = d.moreBody(c, room, room, 2000)
	return d.moreSays(c, room, room, 2000)
}

// growable is a part of a receipt that is given more lines first, then wider ones.
type growable struct {
	all          int // lines that exist
	lines, width func(*choice) *int
	cost         func(choice) int // tokens of this part alone
}

func (d *Draft) moreSays(c choice, room, share, width int) choice {
	return d.growPart(c, room, share, width, growable{
		len(d.says), func(c *choice) *int { return &c.says }, func(c *choice) *int { return &c.saysWidth }, d.saysCost})
}

func (d *Draft) moreBody(c choice, room, share, width int) choice {
	return d.growPart(c, room, share, width, growable{
		len(d.body), func(c *choice) *int { return &c.body }, func(c *choice) *int { return &c.bodyWidth }, d.bodyCost})
}

// growPart adds lines while the part stays within share and everything within room, and then widens them up to width.
// It never adds a part that is not shown.
func (d *Draft) growPart(c choice, room, share, width int, g growable) choice {
	if *g.lines(&c) == 0 {
		return c
	}
	within := d.within(c, room, share, g.cost)
	for n := *g.lines(&c); n < g.all; n++ {
		next := c
		*g.lines(&next) = n + 1
		if !within(next) {
			break
		}
		c = next
	}
	for _, w := range widths {
		if w > width || w <= *g.width(&c) {
			continue
		}
		next := c
		*g.width(&next) = w
		if within(next) {
			return next
		}
	}
	return c
}

// within returns a check of choices that differ from c in one part: that part must stay within share, everything
// within room.
func (d *Draft) within(c choice, room, share int, part func(choice) int) func(next choice) bool {
	most := min(share, room-d.contentCost(c)+part(c))
	return func(next choice) bool { return part(next) <= most }
}

// moreShape chooses the most detailed shape that fits.
func (d *Draft) moreShape(c choice, room, share int) choice {
	if c.shape < 0 {
		return c
	}
	within := d.within(c, room, share, d.shapeCost)
	for i := 0; i <= c.shape; i++ {
		next := c
		next.shape, next.shapeWidth = i, 1<<20
		if within(next) {
			return next
		}
	}
	return c
}

// moreEdges chooses all lines of head and tail at the greatest width that fits, else as many as fit at the least width.
func (d *Draft) moreEdges(c choice, room int) choice {
	if c.head == 0 {
		return c
	}
	room -= d.shapeCost(c) + d.cost(d.savedLines(c))
	full := c
	full.head = len(d.head)
	if c.tail > 0 || d.tailRoom(c) == 0 {
		full.tail = d.tailRoom(full)
	}
	for _, w := range widths {
		if full.width = w; w >= c.width && d.edgesFit(full, room) {
			return full
		}
	}
	// The width stays. The head grows by two lines for each line of the tail.
	for grown := true; grown; {
		grown = false
		for i := range 3 {
			next := c
			if i < 2 {
				next.head = min(next.head+1, len(d.head))
			} else if c.tail > 0 {
				next.tail++
			}
			next.tail = min(next.tail, d.tailRoom(next))
			if (next.head != c.head || next.tail != c.tail) && d.edgesFit(next, room) {
				c, grown = next, true
			}
		}
	}
	return c
}

// edgesFit reports whether head and tail, and the summary lines that may refer to them, stay within room.
func (d *Draft) edgesFit(c choice, room int) bool {
	return d.saysCost(c)+d.bodyCost(c)+d.edgesCost(c) <= room
}

// shrink removes the least needed part of a choice, and reports whether there was one.
func (c *choice) shrink() bool {
	switch {
	case c.saved:
		c.saved = false
	case c.body > 0:
		c.body--
	case c.tail > 0:
		c.tail--
	case c.head > 0:
		c.head--
	case c.shape >= 0:
		c.shape = -1
	case c.says > 0:
		c.says--
	default:
		return false
	}
	return true
}
