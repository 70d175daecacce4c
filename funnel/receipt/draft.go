package receipt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Draft is all that a receipt may show. [Draft.Fit] chooses what fits.
type Draft struct {
	count func(string) int // tokens

	lead    string   // of the first line: "LARGE OUTPUT DETECTED: " or ""
	subject string   // of the first line: "kept whole as obs:…", "read from …", "not kept (…)"
	sizes   string   // "1204 lines, 98311 chars, 24611 tokens"
	total   []string // further parts of the total line, most needed first
	notes   string   // "" for none
	below   int      // bytes of the output that follow in a block of their own; 0: none
	brief   bool     // all of it is one line
	next    []string // wordings of the next step without its first word, longest first

	says     []string // findings; lines that say where the text breaks off are first
	cutLines int      // how many lines of says say where the text breaks off
	listed   digest.List
	shapes   []string // most to least detailed
	body     []string
	saved    string // line that says where the file with the output or its link is, or ""

	quotes map[string]digest.Quote // lines of says and body that quote a line of the output, by their text

	lines      int64
	before     int64 // lines before head, which an earlier answer has shown
	head, tail []text.Line
	rows       rowLayout             // nil: the lines as they are
	edges      map[edgeKey]shownEdge // cache of the results of rows
	kind       content.Kind
	keepers    func() []*text.Keeper // returns keepers for the lines of head and tail

	clipped map[clipKey]string // lines as they are shown, because Fit needs the same ones many times
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
		lead:    f.lead(),
		subject: f.Subject(),
		sizes:   f.sizes(),
		total:   f.totals(),
		notes:   f.Notes,
		next:    f.nextSteps(),
		shapes:  sum.Shapes, body: sum.Body,
		lines: c.Lines, head: c.Head, tail: c.Tail,
		kind: c.Kind(), edges: map[edgeKey]shownEdge{}, clipped: map[clipKey]string{}, costs: map[string]int{},
	}
	d.says, d.cutLines = cutsFirst(append(f.Findings[:len(f.Findings):len(f.Findings)], f.saysOf(sum.Says)...))
	d.listed = sum.Listed
	d.listed.From += len(f.Findings)
	d.quotes = make(map[string]digest.Quote, len(sum.Quotes))
	for _, q := range sum.Quotes {
		d.quotes[q.Whole] = q
	}
	switch {
	case d.kind == content.Binary:
		d.total = slices.DeleteFunc(d.total, func(s string) bool { return s == d.sizes })
		d.head, d.tail = nil, nil // its bytes are not readable
	case d.kind == content.NDJSON && len(d.head) > 0:
		// The first line of the head shows this record already.
		d.body = slices.DeleteFunc(
			slices.Clone(d.body),
			func(s string) bool { return strings.HasPrefix(s, "record 0: ") },
		)
	}
	if sum.First.Line != "" && sum.Cut == nil && c.Lines == 1 && len(d.head) == 1 {
		d.head = []text.Line{around(d.head[0], sum.First.Offset)}
	}
	if f.News {
		d.before, d.head = c.News.Line, c.News.Head()
	}
	if f.Terminal {
		d.head, d.tail = f.terminalLines(d.head, d.before), f.terminalLines(d.tail, c.Lines-int64(len(d.tail)))
	}
	d.keepers = sync.OnceValue(d.keepVarying)
	if f.records() {
		d.rows = rowLayoutOf(f.Count, d.head, d.tail)
	}
	return d
}

// terminalLines returns lines, of which the first has the number from, as a terminal would show them.
func (f Facts) terminalLines(part []text.Line, from int64) []text.Line {
	shown := make([]text.Line, len(part))
	for i, l := range part {
		shown[i] = l.Terminal()
		switch s := &f.Captured.Streams; {
		case s.Mixed() && s.HasStderr(from+int64(i)):
			shown[i] = shown[i].Marked(text.StderrMark)
		case bytes.HasPrefix(bytes.TrimLeft(shown[i].Left, "> "), []byte(text.StderrMark)):
			shown[i] = shown[i].Marked(">") // a command may not imitate the mark
		}
	}
	return shown
}

// around returns a line of JSON without its records, of which the body shows the first one: what stands before offset,
// and the brackets at its end.
func around(l text.Line, offset int64) text.Line {
	end := l.Right
	if l.Whole() {
		end = l.Left
	}
	end = bytes.TrimRight(end, " \t\r\n")
	closing := end[len(bytes.TrimRight(end, "]}")):]
	closing = closing[max(0, bytes.LastIndexByte(closing, ']')):] // without the brackets of the last record
	if offset >= int64(len(l.Left)) || strings.IndexByte("{[", l.Left[offset]) < 0 || len(closing) == 0 {
		return l
	}
	// Clip drops the first char of Right, because it could be incomplete.
	return text.Line{Left: l.Left[:offset], Right: append([]byte{' '}, closing...), Chars: l.Chars}
}

// rowLayoutOf returns the layout of head and tail if it costs less than the lines as they are, else nil.
func rowLayoutOf(count func(string) int, head, tail []text.Line) rowLayout {
	for _, part := range [][]text.Line{head, tail} {
		records, ok := wholeLines(part)
		if !ok {
			return nil
		}
		rows, _, ok := layout(records)
		if !ok || count(strings.Join(rows, "\n")) >= count(string(bytes.Join(records, []byte("\n")))) {
			return nil
		}
	}
	return func(part []text.Line) ([]string, bool) {
		records, _ := wholeLines(part)
		rows, header, ok := layout(records)
		if ok {
			return rows, header
		}
		for _, r := range records {
			rows = append(rows, string(r))
		}
		return rows, false
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

// SetSaved names the file that holds the output; "": none does that the caller can read.
func (d *Draft) SetSaved(path string) { d.setPlace("saved to: ", path) }

// SetLink names the URL at which the output can be read; "": there is none. A receipt has one place, the last one set.
func (d *Draft) SetLink(url string) { d.setPlace("link: ", url) }

func (d *Draft) setPlace(lead, place string) {
	if place != "" {
		d.saved = lead + text.VisibleLine(place, false)
	}
}

// OnlyTotals removes everything about the output but its totals, because the first below bytes of the output follow in
// a block of their own.
func (d *Draft) OnlyTotals(below int) {
	d.says, d.cutLines, d.shapes, d.body, d.head, d.tail, d.saved = nil, 0, nil, nil, nil, nil, ""
	d.below = below
}

// OnlyFirstLines removes everything but the first line, the totals and the notes, which become one line: an earlier
// answer has shown the same output.
func (d *Draft) OnlyFirstLines() {
	d.OnlyTotals(0)
	d.next, d.brief = nil, true
}

// cutWords begin the lines that say where a text breaks off.
var cutWords = []string{"breaks off ", "broken at ", "last complete: ", "cut-off piece "}

// cutsFirst sorts the lines that say where a text breaks off before the others, and returns how many they are.
func cutsFirst(says []string) (sorted []string, cuts int) {
	var others []string
	for _, s := range says {
		if slices.ContainsFunc(cutWords, func(w string) bool { return strings.HasPrefix(s, w) }) {
			sorted = append(sorted, s)
		} else {
			others = append(others, s)
		}
	}
	return append(sorted, others...), len(sorted)
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
		s = text.Escape(d.clipEdge(part, index, l, width), text.InReceipt)
		d.clipped[k] = s
	}
	return s
}

// clipEdge clips a line so that the fields in which a line of head or tail differs from the others stay.
func (d *Draft) clipEdge(part byte, index int, l text.Line, width int) string {
	switch {
	case l.Whole() && len(l.Left) <= width || part != 'h' && part != 't':
		return l.Clip(width, d.json())
	case part == 't':
		index += len(d.head)
	}
	return d.keepers()[index].Clip(width)
}

// keepVarying returns the lines of head and tail with the fields in which they differ.
func (d *Draft) keepVarying() []*text.Keeper {
	lines := slices.Concat(d.head, d.tail)
	out := make([]*text.Keeper, len(lines))
	for i, fields := range varyingFields(d.kind, lines) {
		out[i] = text.NewKeeper(lines[i], d.json(), fields)
	}
	return out
}

// json reports whether hidden characters are shown as JSON escapes.
func (d *Draft) json() bool { return d.kind == content.JSON || d.kind == content.NDJSON }

// frameLevels is the number of wordings of the lines around the content. Level 0 is the longest, the last the shortest.
// Only level 0 says what a record is.
const frameLevels = 6

// frame returns the lines above and below the content.
func (d *Draft) frame(level int) (top, bottom []string) {
	subjectWidth := []int{1 << 20, 1 << 20, 300, 160, 100, 60}[level]
	noteWidth := []int{600, 300, 160, 100, 60, text.MinWidth}[level]
	top = append(top, d.lead+text.LineOf(d.subject).Clip(subjectWidth, false))
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
	if len(d.next) > 0 {
		if d.below > 0 {
			bottom = append(bottom, fmt.Sprintf("showing the first %d bytes below", d.below))
		}
		wording := d.next[min(level, len(d.next)-1)]
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

// edgeLines returns the lines and markers of head and tail. Markers name line numbers of the output, whatever the
// layout.
func (d *Draft) edgeLines(c choice) []string {
	if c.head == 0 {
		return nil
	}
	head, columns := d.edge('h', 0, d.head[:c.head], c.width)
	title := fmt.Sprintf("--- head: 1-%d of %d ---", c.head, d.lines)
	if d.before > 0 {
		title = fmt.Sprintf("--- new: %d-%d of %d ---", d.before+1, d.before+int64(c.head), d.lines)
	}
	out := append([]string{title}, head...)
	if hidden := d.lines - d.before - int64(c.head) - int64(c.tail); hidden > 0 {
		out = append(out, fmt.Sprintf("--- %s not shown ---", lines(hidden)))
	}
	if c.tail == 0 {
		return out
	}
	from := len(d.tail) - c.tail
	tail, again := d.edge('t', from, d.tail[from:], c.width)
	if columns && again && head[0] == tail[0] { // one table: name its columns once
		tail = tail[1:]
	}
	return append(append(out, fmt.Sprintf("--- tail: %d-%d ---", d.lines-int64(c.tail)+1, d.lines)), tail...)
}

// edgeKey is a number of lines of the head or the tail at a width. Laying them out again for every choice took a tenth
// of a search of 4,000 files: rows "tree: search, Go's source" of docs/SPEED.md.
type edgeKey struct {
	part        byte
	from, lines int
	width       int
}

// shownEdge is a head or a tail as it is shown.
type shownEdge struct {
	rows    []string
	columns bool
}

// edge returns the head or the tail as it is shown; columns reports that the first row names the columns of a table.
func (d *Draft) edge(part byte, from int, edge []text.Line, width int) (rows []string, columns bool) {
	if d.rows != nil {
		k := edgeKey{part, from, len(edge), width}
		shown, ok := d.edges[k]
		if !ok {
			laid, columns := d.rows(edge)
			shown = shownEdge{laid, columns}
			for i, r := range laid {
				laid[i] = text.Escape(text.LineOf(r).Clip(width, false), text.InReceipt)
			}
			d.edges[k] = shown
		}
		return shown.rows, shown.columns
	}
	for i, l := range edge {
		rows = append(rows, d.clip(part, from+i, l, width))
	}
	return rows, false
}

func (d *Draft) saysLines(c choice) (out []string) {
	width := max(c.saysWidth, c.lead) // of the first line
	for i, s := range d.says[:c.says] {
		if shown := int64(c.says - d.listed.From); i == d.listed.From && d.listed.Title != "" &&
			shown < d.listed.Total {
			out = append(out, fmt.Sprintf("%s, %d of %d:", d.listed.Title, shown, d.listed.Total))
		}
		out = append(out, d.summaryLine('s', i, s, c, width))
		width = c.saysWidth
	}
	return out
}

func (d *Draft) bodyLines(c choice) (out []string) {
	for i, s := range d.body[:c.body] {
		if opening, ok := strings.CutPrefix(s, "begins: "); ok && d.headHas(opening, c) {
			continue
		}
		out = append(out, d.summaryLine('b', i, s, c, c.bodyWidth))
	}
	return out
}

// headHas reports whether the head shows the first sentences of a text.
func (d *Draft) headHas(opening string, c choice) bool {
	if c.head == 0 || d.before > 0 {
		return false
	}
	head, _ := d.edge('h', 0, d.head[:c.head], c.width)
	opening = strings.TrimSuffix(strings.TrimSuffix(opening, "…"), " ")
	return strings.Contains(strings.Join(strings.Fields(strings.Join(head, " ")), " "), opening)
}

// summaryLine returns a line of the summary. If head or tail shows the quoted line whole, only its place is given.
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
	case n > d.before && n-d.before <= int64(c.head):
		l = d.head[n-d.before-1]
	case back < int64(c.tail):
		l = d.tail[len(d.tail)-1-int(back)]
	default:
		return false
	}
	return l.Whole() &&
		utf8.RuneCountInString(text.VisibleLine(string(l.Left), d.json())) <= max(c.width, text.MinWidth)
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
	return []string{d.saved}
}

// render returns the text of the receipt, without a newline at its end.
func (d *Draft) render(level int, c choice) string {
	top, bottom := d.frame(level)
	if d.brief {
		return strings.Join(top, "; ")
	}
	// The order: totals, what the kind says, shape, body, file name, notes, head and tail, next step.
	const totals = 2 // lines of top
	return strings.Join(slices.Concat(
		top[:totals],
		d.saysLines(c),
		d.shapeLines(c),
		d.bodyLines(c),
		d.savedLines(c),
		top[totals:],
		d.edgeLines(c),
		bottom,
	), "\n")
}
