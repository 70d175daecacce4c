package funnel

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/summary"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

// draft is all that a receipt may say. [draft.fit] chooses from it what the ceiling has room for.
type draft struct {
	subject string   // of the first line: "kept whole as obs:…", "read from …", "not kept (…)"
	sizes   string   // "1204 lines, 98311 chars, 24611 tokens"
	total   []string // further parts of the total line, most needed first
	notes   string   // "" for none
	left    int      // where positive or rejected: tokens left, told in place of everything else
	reject  bool
	below   int64    // bytes of the output that follow in a block of their own; 0: none
	next    []string // wordings of the next line without its word, longest first

	says   []string // those on where the text breaks off stand first
	cuts   int      // how many of says these are
	shapes []string // most to least detailed
	body   []string
	saved  string // path, or ""

	quotes map[string]summary.Quote // of says and body, by their whole

	lines      int64
	head, tail []line
	rows       func([]line) (rows []string, header bool) // compact layout of records, header: the first is that of a table; nil: the lines as they are
	kind       content.Kind

	clipped map[clipKey]string // lines as they are shown, for fit asks for the same ones again and again
	costs   map[string]int     // tokens of a line with its newline
}

// clipKey is a line of a part at a width.
type clipKey struct {
	part  byte
	index int
	width int
}

// show is a line of others within a receipt.
func (d *draft) show(part byte, index int, l line, width int) string {
	k := clipKey{part, index, width}
	s, ok := d.clipped[k]
	if !ok {
		s = fence(l.shown(width, d.json()), inReceipt)
		if d.clipped == nil {
			d.clipped = map[clipKey]string{}
		}
		d.clipped[k] = s
	}
	return s
}

// json says that hidden characters are shown as JSON has them.
func (d *draft) json() bool { return d.kind == content.JSON || d.kind == content.NDJSON }

// notShown is said in place of everything else: nothing more of the window can be had in this session.
func notShown(left int) string {
	return "not shown: " + plural(int64(left), "token") + " left; begin a new session"
}

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") {
		return strconv.FormatInt(n, 10) + " " + one + "es"
	}
	return strconv.FormatInt(n, 10) + " " + one + "s"
}

// about words a number of tokens: exact, or with its margin.
func about(t tokens.Total) string {
	if t.Margin <= 0 {
		return plural(t.N, "token")
	}
	return t.String() + " tokens"
}

// The lines of a receipt that do not depend on what is left out. Level 0 says all; each level says less.
const frameLevels = 6

func (d *draft) frame(level int) (top, bottom []string) {
	subjectWidth := []int{1 << 20, 1 << 20, 300, 160, 100, 60}[level]
	noteWidth := []int{600, 300, 160, 100, 60, minWidth}[level]
	top = append(top, notice+text(d.subject).shown(subjectWidth, false))
	total := "total: " + d.sizes
	parts := d.total
	if level >= 2 {
		parts = parts[:min(len(parts), max(0, 5-level))]
	}
	for _, p := range parts {
		total += "; " + text(p).shown([]int{400, 200, 120, 80, 60, minWidth}[level], d.json())
	}
	top = append(top, total)
	if d.notes != "" {
		top = append(top, noteWord+text(d.notes).shown(noteWidth, false))
	}
	switch {
	case d.reject:
		bottom = append(bottom, notShown(d.left))
	case len(d.next) > 0:
		if d.below > 0 {
			bottom = append(bottom, fmt.Sprintf("showing the first %d bytes below", d.below))
		}
		wording := d.next[min(max(0, level-1), len(d.next)-1)]
		bottom = append(bottom, nextWord+visibleLine(wording, false))
	}
	return top, bottom
}

// choice is what a receipt shows of a draft.
type choice struct {
	says, saysWidth   int
	lead              int // least width of the first line of says
	shape, shapeWidth int // index into shapes; −1: none
	body, bodyWidth   int
	head, tail, width int
	saved             bool
}

// edgeLines are the lines and markers of head and tail. The numbers are of the output's lines, whatever the layout.
func (d *draft) edgeLines(c choice) []string { return slices.Collect(d.eachEdge(c)) }

// eachEdge is edgeLines, of which lines behind where it is left are not made.
func (d *draft) eachEdge(c choice) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.head == 0 || !yield(fmt.Sprintf("--- head: 1-%d of %d ---", c.head, d.lines)) {
			return
		}
		var names string // of the columns, where the head begins with them
		for l, header := range d.edge('h', 0, d.head[:c.head], c.width) {
			if header {
				names = l
			}
			if !yield(l) {
				return
			}
		}
		if hidden := d.lines - int64(c.head) - int64(c.tail); hidden > 0 && !yield(fmt.Sprintf("--- %s not shown ---", plural(hidden, "line"))) {
			return
		}
		if c.tail == 0 || !yield(fmt.Sprintf("--- tail: %d-%d ---", d.lines-int64(c.tail)+1, d.lines)) {
			return
		}
		from := len(d.tail) - c.tail
		for l, header := range d.edge('t', from, d.tail[from:], c.width) {
			if header && names == l { // one table: its columns are named once
				continue
			}
			if !yield(l) {
				return
			}
		}
	}
}

// edge is the head or the tail as shown; a row is true that names the columns of a table.
func (d *draft) edge(part byte, from int, lines []line, width int) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		if d.rows != nil {
			rows, header := d.rows(lines)
			for i, r := range rows {
				if !yield(fence(text(r).shown(width, false), inReceipt), header && i == 0) {
					return
				}
			}
			return
		}
		for i, l := range lines {
			if !yield(d.show(part, from+i, l, width), false) {
				return
			}
		}
	}
}

func (d *draft) saysLines(c choice) (out []string) {
	for i, s := range d.says[:c.says] {
		width := c.saysWidth
		if i == 0 {
			width = max(width, c.lead)
		}
		out = append(out, d.said('s', i, s, c, width))
	}
	return out
}

func (d *draft) bodyLines(c choice) (out []string) {
	for i, s := range d.body[:c.body] {
		out = append(out, d.said('b', i, s, c, c.bodyWidth))
	}
	return out
}

// said is a line of what the kind says. One that repeats a line which head or tail shows whole says only where that is.
func (d *draft) said(part byte, index int, s string, c choice, width int) string {
	if q, ok := d.quotes[s]; ok && d.shows(c, q.Line) {
		return d.show(part-'a'+'A', index, text(q.Short), width)
	}
	return d.show(part, index, text(s), width)
}

// shows says that head or tail show line n (from 1) whole.
func (d *draft) shows(c choice, n int64) bool {
	if d.rows != nil || n < 1 || n > d.lines {
		return false
	}
	var l line
	switch back := d.lines - n; {
	case n <= int64(c.head):
		l = d.head[n-1]
	case back < int64(c.tail):
		l = d.tail[len(d.tail)-1-int(back)]
	default:
		return false
	}
	return len(l.right) == 0 && utf8.RuneCountInString(visibleLine(string(l.left), d.json())) <= max(c.width, minWidth)
}

func (d *draft) shapeLines(c choice) []string {
	if c.shape < 0 {
		return nil
	}
	return []string{"shape: " + text(d.shapes[c.shape]).shown(c.shapeWidth, d.json())}
}

func (d *draft) savedLines(c choice) []string {
	if !c.saved {
		return nil
	}
	return []string{"saved to: " + visibleLine(d.saved, false)}
}

// render gives the receipt's text, without a newline at its end.
func (d *draft) render(level int, c choice) string {
	top, bottom := d.frame(level)
	// What the kind says stands behind the totals, then the shape, then what else is telling, then the edges.
	n := 1
	if len(top) > 1 {
		n = 2
	}
	var out []string
	out = append(out, top[:n]...)
	out = append(out, d.saysLines(c)...)
	out = append(out, d.shapeLines(c)...)
	out = append(out, d.bodyLines(c)...)
	out = append(out, d.savedLines(c)...)
	out = append(out, top[n:]...)
	out = append(out, d.edgeLines(c)...)
	out = append(out, bottom...)
	return strings.Join(out, "\n")
}
