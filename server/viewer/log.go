package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"slices"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/kinds/logs"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxBars   = 120
	markBytes = 256 // of a line, in which its time and level are
)

// classes are those of levels: of a bar's parts, from below.
var (
	classes    = [3]string{"bad", "warn", "dim"}
	levelClass = map[string]string{"warn": "warn", "error": "bad", "fatal": "bad"}
)

// histogram counts the lines of a log by time and level.
type histogram struct {
	mu                     sync.Mutex
	shift                  int           // a bar is 1<<shift ms wide
	bars                   map[int64]bin // by their time in widths
	first, last            int64         // of these
	lines, timed, levelled int64
}

// bin is a bar of a histogram: how many of its lines have which of the classes.
type bin struct {
	line int64 // the first
	time string
	n    [len(classes)]int64
}

// add counts a line.
func (h *histogram) add(n int64, m *logs.Marks) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines = n; m.Level != "" {
		h.levelled++
	}
	if !m.Known {
		return
	}
	one, at := bin{line: n, time: m.Time}, m.At>>h.shift
	one.n[slices.Index(classes[:], cmp.Or(levelClass[m.Level], "dim"))]++
	if h.timed++; h.timed == 1 {
		h.bars, h.first, h.last = map[int64]bin{}, at, at
	}
	h.bars[at] = h.bars[at].with(one)
	for h.first, h.last = min(h.first, at), max(h.last, at); h.last-h.first >= maxBars; h.shift++ {
		wider := map[int64]bin{}
		for at, b := range h.bars {
			wider[at>>1] = wider[at>>1].with(b)
		}
		h.bars, h.first, h.last = wider, h.first>>1, h.last>>1
	}
}

// with adds the lines of another bar.
func (b bin) with(other bin) bin {
	if b.line == 0 || other.line < b.line {
		b.line, b.time = other.line, other.time
	}
	for i, n := range other.n {
		b.n[i] += n
	}
	return b
}

// chart draws the histogram; each bar leads to its first line.
func (h *histogram) chart(q *request) markup {
	most, sum := int64(1), func(b bin) int64 { return b.n[0] + b.n[1] + b.n[2] }
	for _, b := range h.bars {
		most = max(most, sum(b))
	}
	s := `<svg class="bars" viewBox="0 0 ` + itoa(h.last-h.first+1) +
		` 100" preserveAspectRatio="none" role="group" aria-label="Lines over time">`
	for at := h.first; at <= h.last; at++ {
		b, ok := h.bars[at]
		if !ok {
			continue
		}
		text := fmt.Sprintf("%s: %s, %s, %s", b.time, content.Plural(sum(b), "line", "lines"),
			content.Plural(b.n[0], "error", "errors"), content.Plural(b.n[1], "warning", "warnings"))
		to := string(q.with("line", itoa(b.line), "top", "", "from", ""))
		s += fmt.Sprintf(`<a href="%s" aria-label="%s"><title>%[2]s</title>`, html.EscapeString(to), html.EscapeString(text))
		y := 100.0
		for i, class := range classes {
			if n := b.n[i]; n > 0 {
				height := max(100*float64(n)/float64(most), 2) // few errors are seen beside many lines
				y -= height
				s += fmt.Sprintf(`<rect x="%d" y="%.1f" width=".9" height="%.1f" class="%s"/>`,
					at-h.first, y, height, class)
			}
		}
		s += "</a>"
	}
	return markup(s + "</svg>")
}

// logView shows the lines of a log by level, how many there are over time, and where the errors are.
func logView(q *request, o *opened) ([]any, error) {
	q.query.Set("as", "log") // links stay in this view
	bad, h := q.levels(o)
	small := map[bool]int64{true: 1 << 62, false: 1}[o.Size < recordsBytes] // it is read in no time
	failed, done, wrong := bad.wait(q.ctx, small)
	shown, err := textView(q, o)
	if err != nil {
		return nil, err
	}
	at := q.number("line", 0)
	if text, ok := shown[0].(*lines); ok {
		var m logs.Marks
		for i := range text.Lines {
			one := &text.Lines[i]
			m.Read([]byte(one.Text))
			one.Class = cmp.Or(one.Class, levelClass[m.Level])
			at = cmp.Or(at, one.N-1)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	q.wait = q.wait || !done
	said, blocks := grouped(h.lines)+" lines, "+content.Plural(failed, "error", "errors"), []any{}
	if !done {
		said += " so far; the rest is being read"
	}
	if len(h.bars) > 0 {
		said += ", from " + h.bars[h.first].time + " to " + h.bars[h.last].time
		blocks = append(blocks, h.chart(q))
	}
	blocks = append(append(blocks, note{said, ""}), remarks(wrong)...)
	lacking := map[string]int64{"time that is known": h.lines - h.timed, "level": h.lines - h.levelled}
	if lacks, ok := errors.AsType[*content.Remarks](record.Without(h.lines, lacking)); ok && done {
		for _, n := range lacks.OfFields {
			blocks = append(blocks, note{n, "warn"})
		}
	}
	return append(append(blocks, q.errorLinks(bad, at)), shown...), nil
}

// errorLinks leads to the errors before and after a line, as far as they are known.
func (q *request) errorLinks(bad *list, at int64) (all links) {
	bad.mu.Lock()
	defer bad.mu.Unlock()
	name := " error"
	if bad.stride > 1 {
		name += " of every " + itoa(bad.stride)
	}
	to := func(i int, name string) {
		if i >= 0 && i < len(bad.starts) {
			all = append(all, link{Text: name, To: q.with("line", itoa(bad.starts[i]), "top", "", "from", "")})
		}
	}
	before, hit := slices.BinarySearch(bad.starts, at)
	to(before-1, "previous"+name)
	if hit {
		before++
	}
	to(before, "next"+name)
	return all
}

// levels returns the list of the lines with errors of a log, and the histogram of all lines.
func (q *request) levels(o *opened) (*list, *histogram) {
	mine := &histogram{}
	l := q.listOf(o, "levels", mine, func(o *opened, _ int64) walk {
		return func(ctx context.Context, visit func(int64, int64) bool) error {
			var m logs.Marks
			bad := int64(0)
			return o.lines(ctx, content.Span{End: 1 << 62}, markBytes, func(in *record.Lines, b []byte) bool {
				m.Read(b)
				if mine.add(in.Number, &m); levelClass[m.Level] == "bad" {
					visit(bad, in.Number)
					bad++
				}
				return true
			})
		}
	})
	return l, l.beside.(*histogram) //nolint:forcetypeassert // it is of this list
}
