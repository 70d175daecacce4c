package receipt

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/kind/digest"
)

// Draft is all that a receipt may show. [Draft.Fit] chooses what fits.
type Draft struct {
	count func(string) int // tokens

	subject string   // of the first line: "kept whole as obs:…", "read from …", "not kept (…)"
	sizes   string   // "1204 lines, 98311 chars, 24611 tokens"
	total   []string // further parts of the total line, most needed first
	notes   string   // "" for none
	left    int      // tokens left, which replace everything else if rejected
	reject  bool
	below   int      // bytes of the output that follow in a block of their own; 0: none
	next    []string // wordings of the next step without its first word, longest first

	says     []string // those that say where the text breaks off are first
	cutLines int      // how many of says these are
	shapes   []string // most to least detailed
	body     []string
	saved    string // path, or ""

	quotes map[string]digest.Quote // of says and body, by their whole

	lines      int64
	head, tail []text.Line
	rows       rowLayout // nil: the lines as they are
	kind       content.Kind

	clipped map[clipKey]string // lines as they are shown; Fit asks for the same ones again and again
	costs   map[string]int     // tokens of a line with its newline
}

// rowLayout is the compact layout of lines that are records; header says that the first row names the columns of a
// table.
type rowLayout func(lines []text.Line) (rows []string, header bool)

// NewDraft completes the summary of the output and returns the draft of its receipt.
func NewDraft(f Facts) *Draft {
	c, sum := f.Captured, f.Captured.Summary()
	d := &Draft{
		count:   f.Count,
		subject: f.Subject(),
		sizes:   f.sizes(),
		total:   f.totals(),
		notes:   f.Notes,
		left:    f.Left, reject: f.Reject,
		next:   f.nextSteps(),
		shapes: sum.Shapes, body: sum.Body,
		lines: c.Lines, head: c.Head, tail: c.Tail,
		kind: c.Kind(),
	}
	d.says, d.cutLines = cutsFirst(sum.Says)
	d.quotes = make(map[string]digest.Quote, len(sum.Quotes))
	for _, q := range sum.Quotes {
		d.quotes[q.Whole] = q
	}
	switch {
	case d.kind == content.Binary:
		d.total = slices.DeleteFunc(d.total, func(s string) bool { return s == d.sizes })
		d.head, d.tail = nil, nil // its bytes are not readable
	case d.kind == content.NDJSON && len(d.head) > 0:
		// The head's first line is this record already.
		d.body = slices.DeleteFunc(slices.Clone(d.body), func(s string) bool { return strings.HasPrefix(s, "record 0: ") })
	}
	if f.records() {
		d.rows = rowLayoutOf(f.Count, d.head, d.tail)
	}
	return d
}

// rowLayoutOf returns the layout of head and tail if it costs less than the lines as they are, else nil.
func rowLayoutOf(count func(string) int, head, tail []text.Line) rowLayout {
	for _, part := range [][]text.Line{head, tail} {
		records, ok := wholeLines(part)
		if !ok {
			return nil
		}
		rows, ok := layout(records)
		if !ok || count(strings.Join(rows, "\n")) >= count(string(bytes.Join(records, []byte("\n")))) {
			return nil
		}
	}
	return func(part []text.Line) ([]string, bool) {
		records, _ := wholeLines(part)
		rows, header, ok := layoutRows(records)
		if ok {
			return rows, header
		}
		out := make([]string, len(records))
		for i, r := range records {
			out[i] = string(r)
		}
		return out, false
	}
}

// wholeLines returns the bytes of lines; ok is false if one is not held whole.
func wholeLines(part []text.Line) (out [][]byte, ok bool) {
	for _, l := range part {
		if !l.Whole() {
			return nil, false
		}
		out = append(out, l.Left)
	}
	return out, true
}

// SetSaved names the file that holds the output.
func (d *Draft) SetSaved(path string) { d.saved = path }

// OnlyTotals leaves out everything about the output but its totals: its first bytes follow in a block of their own.
func (d *Draft) OnlyTotals(below int) {
	d.says, d.cutLines, d.shapes, d.body, d.head, d.tail, d.saved = nil, 0, nil, nil, nil, nil, ""
	d.below = below
}

// cutWords begin the lines that say where a text breaks off.
var cutWords = []string{"breaks off ", "broken at ", "last complete: ", "cut-off piece "}

// cutsFirst returns the lines with those first that say where a text breaks off, and how many they are.
func cutsFirst(says []string) (sorted []string, cuts int) {
	rank := func(s string) int {
		if slices.ContainsFunc(cutWords, func(w string) bool { return strings.HasPrefix(s, w) }) {
			return 0
		}
		return 1
	}
	sorted = slices.Clone(says)
	slices.SortStableFunc(sorted, func(a, b string) int { return rank(a) - rank(b) })
	for cuts < len(sorted) && rank(sorted[cuts]) == 0 {
		cuts++
	}
	return sorted, cuts
}

// clipKey is a line of a part at a width.
type clipKey struct {
	part  byte
	index int
	width int
}

// clip returns a line of the output as it is shown in a receipt.
func (d *Draft) clip(part byte, index int, l text.Line, width int) string {
	k := clipKey{part, index, width}
	s, ok := d.clipped[k]
	if !ok {
		s = text.Escape(l.Clip(width, d.json()), text.InReceipt)
		if d.clipped == nil {
			d.clipped = map[clipKey]string{}
		}
		d.clipped[k] = s
	}
	return s
}

// json reports whether hidden characters are shown as JSON escapes.
func (d *Draft) json() bool { return d.kind == content.JSON || d.kind == content.NDJSON }

// frameLevels is how many wordings the lines around the content have. Level 0 is the longest, the last the shortest.
const frameLevels = 6

// frame returns the lines above and below the content.
func (d *Draft) frame(level int) (top, bottom []string) {
	subjectWidth := []int{1 << 20, 1 << 20, 300, 160, 100, 60}[level]
	noteWidth := []int{600, 300, 160, 100, 60, text.MinWidth}[level]
	top = append(top, text.LargeOutput+text.LineOf(d.subject).Clip(subjectWidth, false))
	total := "total: " + d.sizes
	parts := d.total
	if level >= 2 {
		parts = parts[:min(len(parts), max(0, 5-level))]
	}
	for _, p := range parts {
		total += "; " + text.LineOf(p).Clip([]int{400, 200, 120, 80, 60, text.MinWidth}[level], d.json())
	}
	top = append(top, total)
	if d.notes != "" {
		top = append(top, text.NotePrefix+text.LineOf(d.notes).Clip(noteWidth, false))
	}
	switch {
	case d.reject:
		bottom = append(bottom, NotShown(d.left))
	case len(d.next) > 0:
		if d.below > 0 {
			bottom = append(bottom, fmt.Sprintf("showing the first %d bytes below", d.below))
		}
		wording := d.next[min(max(0, level-1), len(d.next)-1)]
		bottom = append(bottom, text.NextPrefix+text.VisibleLine(wording, false))
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

// edgeLines returns the lines and markers of head and tail. The numbers are those of the output, whatever the layout.
func (d *Draft) edgeLines(c choice) []string { return slices.Collect(d.eachEdge(c)) }

// eachEdge is edgeLines without building the lines that the caller does not use.
func (d *Draft) eachEdge(c choice) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.head == 0 || !yield(fmt.Sprintf("--- head: 1-%d of %d ---", c.head, d.lines)) {
			return
		}
		var names string // of the columns, if the head begins with them
		for l, header := range d.edge('h', 0, d.head[:c.head], c.width) {
			if header {
				names = l
			}
			if !yield(l) {
				return
			}
		}
		if hidden := d.lines - int64(c.head) - int64(c.tail); hidden > 0 &&
			!yield(fmt.Sprintf("--- %s not shown ---", lines(hidden))) {
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

// edge returns the head or the tail as it is shown; true marks the row that names the columns of a table.
func (d *Draft) edge(part byte, from int, edge []text.Line, width int) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		if d.rows != nil {
			rows, header := d.rows(edge)
			for i, r := range rows {
				if !yield(text.Escape(text.LineOf(r).Clip(width, false), text.InReceipt), header && i == 0) {
					return
				}
			}
			return
		}
		for i, l := range edge {
			if !yield(d.clip(part, from+i, l, width), false) {
				return
			}
		}
	}
}

func (d *Draft) saysLines(c choice) (out []string) {
	for i, s := range d.says[:c.says] {
		width := c.saysWidth
		if i == 0 {
			width = max(width, c.lead)
		}
		out = append(out, d.summaryLine('s', i, s, c, width))
	}
	return out
}

func (d *Draft) bodyLines(c choice) (out []string) {
	for i, s := range d.body[:c.body] {
		out = append(out, d.summaryLine('b', i, s, c, c.bodyWidth))
	}
	return out
}

// summaryLine returns a line of the summary. If it repeats a line that head or tail shows whole, it says only where.
func (d *Draft) summaryLine(part byte, index int, s string, c choice, width int) string {
	if q, ok := d.quotes[s]; ok && d.showsWhole(c, q.Line) {
		return d.clip(part-'a'+'A', index, text.LineOf(q.Short), width)
	}
	return d.clip(part, index, text.LineOf(s), width)
}

// showsWhole reports whether head or tail show line n (from 1) whole.
func (d *Draft) showsWhole(c choice, n int64) bool {
	if d.rows != nil || n < 1 || n > d.lines {
		return false
	}
	var l text.Line
	switch back := d.lines - n; {
	case n <= int64(c.head):
		l = d.head[n-1]
	case back < int64(c.tail):
		l = d.tail[len(d.tail)-1-int(back)]
	default:
		return false
	}
	return l.Whole() && utf8.RuneCountInString(text.VisibleLine(string(l.Left), d.json())) <= max(c.width, text.MinWidth)
}

func (d *Draft) shapeLines(c choice) []string {
	if c.shape < 0 {
		return nil
	}
	return []string{"shape: " + text.LineOf(d.shapes[c.shape]).Clip(c.shapeWidth, d.json())}
}

func (d *Draft) savedLines(c choice) []string {
	if !c.saved {
		return nil
	}
	return []string{"saved to: " + text.VisibleLine(d.saved, false)}
}

// render returns the text of the receipt, without a newline at its end.
func (d *Draft) render(level int, c choice) string {
	top, bottom := d.frame(level)
	// The order: totals, what the kind says, shape, body, file name, notes, head and tail, next step.
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
