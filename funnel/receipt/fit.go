package receipt

import (
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds"
)

// fitter chooses what a receipt shows of a draft within a ceiling.
//
// It adds up the tokens of single lines, which is close to the tokens of the whole text. Fit counts the whole text at
// the end, so that the ceiling is never exceeded.
type fitter struct{ *Draft }

// cost returns the tokens of lines, each with its newline.
func (f *fitter) cost(lines []string) (sum int) {
	for _, l := range lines {
		n, ok := f.costs[l]
		if !ok {
			n = f.count(l + "\n")
			f.costs[l] = n
		}
		sum += n
	}
	return sum
}

// total returns the tokens of a choice.
func (f *fitter) total(c choice) int {
	return f.saysCost(c) + f.shapeCost(c) + f.bodyCost(c) + f.edgesCost(c) + f.cost(f.savedLines(c))
}

func (f *fitter) edgesCost(c choice) int { return f.cost(f.edgeLines(c)) }
func (f *fitter) saysCost(c choice) int  { return f.cost(f.saysLines(c)) }
func (f *fitter) shapeCost(c choice) int { return f.cost(f.shapeLines(c)) }
func (f *fitter) bodyCost(c choice) int  { return f.cost(f.bodyLines(c)) }

// Fit returns the text of the receipt and its tokens: at most ceiling, unless the shortest frame takes more.
func (d *Draft) Fit(ceiling int) (receipt string, tokens int) {
	f := &fitter{d}
	level := f.level(ceiling)
	top, bottom := d.frame(level)
	room := ceiling - f.cost(top) - f.cost(bottom)
	c := choice{shape: -1}
	if room > 0 {
		c = f.grow(f.leastOfEach(c, room), room)
		for c.body > 0 && strings.HasSuffix(f.body[c.body-1], ":") {
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
func (f *fitter) level(ceiling int) int {
	fits := frameLevels - 1
	for level := frameLevels - 1; level >= 0; level-- {
		top, bottom := f.frame(level)
		if f.cost(top)+f.cost(bottom) <= ceiling {
			fits = level
		}
	}
	for level := fits; level < frameLevels; level++ {
		top, bottom := f.frame(level)
		cost := f.cost(top) + f.cost(bottom)
		if level > 0 && 4*cost <= 3*ceiling || 3*cost <= ceiling {
			return level
		}
	}
	return fits
}

// leastOfEach chooses the smallest form of every part that is not empty, most needed first. It stops at the first part
// that does not fit.
func (f *fitter) leastOfEach(c choice, room int) choice {
	try := func(change func(*choice, int), widths ...int) bool {
		for _, w := range widths {
			next := c
			change(&next, w)
			if f.total(next) <= room {
				c = next
				return true
			}
		}
		return false
	}
	c, all := f.leastSays(c, room)
	if !all {
		return c
	}
	if n := len(f.shapes); n > 0 {
		// The least detailed one, and a better one at once where its share allows it: the shape is worth more than the
		// edges.
		if !try(func(c *choice, w int) { c.shape, c.shapeWidth = n-1, w }, 300, 200, 120, 80, text.MinWidth) {
			return c
		}
		share := int(kinds.Of(f.kind).Shares.Shape * float64(room))
		c = f.moreShape(c, room, max(share, min(room*3/4, 64)))
	}
	if len(f.head) > 0 && !try(func(c *choice, w int) { c.head, c.width = 1, w }, 100, 70, text.MinWidth) {
		return c
	}
	if f.tailRoom(c) > 0 && !try(func(c *choice, w int) { c.tail = 1 }, 0) {
		return c
	}
	if len(f.body) > 0 && !try(func(c *choice, w int) { c.body, c.bodyWidth = 1, w }, 200, 120, 80, text.MinWidth) {
		return c
	}
	if f.saved != "" {
		try(func(c *choice, _ int) { c.saved = true }, 0)
	}
	return c
}

// leastSays chooses the smallest form of the findings: first the lines that say where the text breaks off, without
// which nothing else is shown, then as many of the other lines as fit into half of the room, at least one. all is false
// if nothing else has room.
func (f *fitter) leastSays(c choice, room int) (_ choice, all bool) {
	if f.cutLines > 0 {
		c.says = f.cutLines
		for _, form := range []struct{ width, lead, room int }{
			{240, 240, room / 2}, {160, 200, room * 3 / 5}, {100, 200, room * 3 / 5}, {80, 160, room * 2 / 3}, {60, 160, room},
			{text.MinWidth, 120, room}, {text.MinWidth, text.MinWidth, room},
		} {
			if c.saysWidth, c.lead = form.width, form.lead; f.saysCost(c) <= form.room {
				all = true
				break
			}
		}
		for !all && c.says > 0 && f.saysCost(c) > room {
			c.says--
		}
		if !all {
			return c, false
		}
	}
	if c.says == len(f.says) {
		return c, true
	}
	if c.says == 0 {
		c.says = 1
		for _, w := range []int{240, 160, 100, 70, text.MinWidth} {
			if c.saysWidth, c.lead = w, w; f.saysCost(c) <= room {
				all = true
				break
			}
		}
		if !all {
			c.says = 0
			return c, false
		}
	}
	if c.says == f.cutLines {
		if c.says++; f.saysCost(c) > room {
			c.says--
			return c, false
		}
	}
	// Use narrower lines, down to a width that can still be understood, if more of them fit then.
	best := c
	for _, w := range []int{240, 160, 100} {
		next := c
		next.saysWidth = min(next.saysWidth, w)
		for next.says < len(f.says) {
			more := next
			if more.says++; f.saysCost(more) > room/2 {
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
func (f *fitter) tailRoom(c choice) int {
	return int(min(int64(len(f.tail)), f.lines-f.before-int64(c.head)))
}

// widths that a line may be clipped to, widest first.
var widths = []int{2000, 1200, 800, 500, 360, 260, 200, 160, 120, 100, 80, 60, text.MinWidth}

// grow distributes the room that is left. The first round obeys the shares of the kind: for the findings, for the
// shape, and, of what these leave, for the body; head and tail get the rest. Then the parts that have more get what is
// left.
func (f *fitter) grow(c choice, room int) choice {
	s := kinds.Of(f.kind).Shares
	share := func(of float64, all int) int { return int(of * float64(all)) }
	c = f.moreSays(c, room, share(s.Says, room), 240)
	c = f.moreShape(c, room, share(s.Shape, room))
	rest := room - f.total(c) + f.bodyCost(c) + f.edgesCost(c)
	c = f.moreBody(c, room, share(s.Body, rest), 240)
	c = f.moreEdges(c, room)
	c = f.moreBody(c, room, room, 400)
	c = f.moreSays(c, room, room, 400)
	c = f.moreShape(c, room, room)
	c = f.moreEdges(c, room)
	c = f.moreBody(c, room, room, 2000)
	return f.moreSays(c, room, room, 2000)
}

// growable is a part of a receipt that is given more lines first, then wider ones.
type growable struct {
	all          int // lines that exist
	lines, width func(*choice) *int
	cost         func(choice) int // tokens of this part alone
}

func (f *fitter) moreSays(c choice, room, share, width int) choice {
	return f.growPart(c, room, share, width, growable{
		len(f.says), func(c *choice) *int { return &c.says }, func(c *choice) *int { return &c.saysWidth }, f.saysCost})
}

func (f *fitter) moreBody(c choice, room, share, width int) choice {
	return f.growPart(c, room, share, width, growable{
		len(f.body), func(c *choice) *int { return &c.body }, func(c *choice) *int { return &c.bodyWidth }, f.bodyCost})
}

// growPart adds lines while the part stays within share and everything within room, and then widens them up to width.
// It never adds a part that is not shown.
func (f *fitter) growPart(c choice, room, share, width int, g growable) choice {
	if *g.lines(&c) == 0 {
		return c
	}
	within := f.within(c, room, share, g.cost)
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
func (f *fitter) within(c choice, room, share int, part func(choice) int) func(next choice) bool {
	most := min(share, room-f.total(c)+part(c))
	return func(next choice) bool { return part(next) <= most }
}

// moreShape chooses the most detailed shape that fits.
func (f *fitter) moreShape(c choice, room, share int) choice {
	if c.shape < 0 {
		return c
	}
	within := f.within(c, room, share, f.shapeCost)
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
func (f *fitter) moreEdges(c choice, room int) choice {
	if c.head == 0 {
		return c
	}
	room -= f.shapeCost(c) + f.cost(f.savedLines(c))
	full := c
	full.head = len(f.head)
	if c.tail > 0 || f.tailRoom(c) == 0 {
		full.tail = f.tailRoom(full)
	}
	for _, w := range widths {
		if full.width = w; w >= c.width && f.edgesFit(full, room) {
			return full
		}
	}
	// Two lines of the head for one of the tail, at a width that can be understood.
	for grown := true; grown; {
		grown = false
		for i := range 3 {
			next := c
			if i < 2 {
				next.head = min(next.head+1, len(f.head))
			} else if c.tail > 0 {
				next.tail++
			}
			next.tail = min(next.tail, f.tailRoom(next))
			if (next.head != c.head || next.tail != c.tail) && f.edgesFit(next, room) {
				c, grown = next, true
			}
		}
	}
	return c
}

// edgesFit reports whether head and tail, and the summary lines that may refer to them, stay within room.
func (f *fitter) edgesFit(c choice, room int) bool {
	return f.saysCost(c)+f.bodyCost(c)+f.edgesCost(c) <= room
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
