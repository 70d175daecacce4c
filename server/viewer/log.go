package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds/logs"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxBars   = 120
	markBytes = 256  // of a line, in which its time and level are
	seekLines = 4096 // that are read at once to find an error before a line
)

var levelClass = map[string]string{"warn": "warn", "error": "bad", "fatal": "bad"}

// histogram counts the lines of a log by time and level.
type histogram struct {
	mu                     sync.Mutex
	shift                  int            // a bar is 1<<shift ms wide
	bars                   map[int64]*bin // by their time in widths
	first, last            int64          // of these
	lines, timed, levelled int64
}

// bin is a bar of a histogram: how many of its lines have which class.
type bin struct {
	line int64 // the first
	time string
	n    map[string]int64
}

// add counts a line.
func (h *histogram) add(n int64, m *logs.Marks) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = n
	if m.Level != "" {
		h.levelled++
	}
	if !m.Known {
		return
	}
	h.timed++
	at, class := m.At>>h.shift, levelClass[m.Level]
	if b := h.bars[at]; b != nil {
		b.n[class]++
		return
	}
	if h.timed == 1 {
		h.bars, h.first, h.last = map[int64]*bin{}, at, at
	}
	h.bars[at] = &bin{n, string(m.Time), map[string]int64{class: 1}}
	for h.first, h.last = min(h.first, at), max(h.last, at); h.last-h.first >= maxBars; h.shift++ {
		wider := map[int64]*bin{}
		for _, at := range slices.Sorted(maps.Keys(h.bars)) {
			b, w := h.bars[at], cmp.Or(wider[at>>1], h.bars[at])
			if wider[at>>1] = w; b == w {
				continue
			}
			if b.line < w.line {
				w.line, w.time = b.line, b.time
			}
			for class, n := range b.n {
				w.n[class] += n
			}
		}
		h.bars, h.first, h.last = wider, h.first>>1, h.last>>1
	}
}

// chart draws the histogram; each bar leads to its first line.
func (h *histogram) chart(q *request) markup {
	most, all := int64(1), slices.Sorted(maps.Keys(h.bars))
	sum := func(b *bin) int64 { return b.n["bad"] + b.n["warn"] + b.n[""] }
	for _, b := range h.bars {
		most = max(most, sum(b))
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg class="bars" viewBox="0 0 %d 100" preserveAspectRatio="none" role="group" aria-label="Lines over time">`, h.last-h.first+1)
	for _, at := range all {
		b, y := h.bars[at], 100.0
		text := fmt.Sprintf("%s: %s, %s, %s", b.time, content.Plural(sum(b), "line", "lines"), content.Plural(b.n["bad"], "error", "errors"),
			content.Plural(b.n["warn"], "warning", "warnings"))
		fmt.Fprintf(&s, `<a href="%s" aria-label="%s"><title>%[2]s</title>`, html.EscapeString(string(q.with("line", itoa(b.line), "top", "", "from", ""))),
			html.EscapeString(text))
		for _, class := range []string{"bad", "warn", ""} {
			if n := b.n[class]; n > 0 {
				height := max(100*float64(n)/float64(most), 2) // few errors are seen beside many lines
				y -= height
				fmt.Fprintf(&s, `<rect x="%d" y="%.1f" width=".9" height="%.1f" class="%s"/>`, at-h.first, y, height, cmp.Or(class, "dim"))
			}
		}
		s.WriteString("</a>")
	}
	return markup(s.String() + "</svg>")
}

// logView shows the lines of a log by level, and how many there are over time.
func logView(q *request, o *opened) ([]any, error) {
	q.query.Set("as", "log") // links stay in this view
	l, h := q.levels(o)
	_, done, wrong := l.wait(q.ctx, 1)
	var blocks []any
	if way := q.query.Get("seek"); way != "" {
		at := q.number("line", 0)
		to, found, err := q.seek(o, l, at, way == "next")
		if err != nil {
			return nil, err
		}
		q.query.Del("seek")
		q.query.Set("line", itoa(max(to, 1)))
		if !found {
			blocks = append(blocks, note{"No error in lines " + grouped(min(at, to)) + "–" + grouped(max(at, to)) + "; these are the last that were read.", ""})
		}
	}
	shown, err := textView(q, o)
	if err != nil {
		return nil, err
	}
	at := q.number("line", 0)
	if text, ok := shown[0].(*lines); ok && len(text.Lines) > 0 {
		var m logs.Marks
		for i := range text.Lines {
			m.Read([]byte(text.Lines[i].Text))
			text.Lines[i].Class = cmp.Or(text.Lines[i].Class, levelClass[m.Level])
		}
		at = cmp.Or(at, text.Lines[0].N)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	q.wait = q.wait || !done
	said := grouped(h.lines) + " lines, by time"
	if !done {
		said += "; the rest is being read"
	}
	if len(h.bars) > 0 {
		said += ": " + h.bars[h.first].time + " to " + h.bars[h.last].time
		blocks = append(blocks, h.chart(q))
	}
	blocks = append(append(blocks, note{said, ""}), remarks(wrong)...)
	lacking := map[string]int64{"time that is known": h.lines - h.timed, "level": h.lines - h.levelled}
	if said, ok := errors.AsType[*content.Remarks](record.Without(h.lines, lacking)); ok && done {
		for _, n := range said.OfFields {
			blocks = append(blocks, note{n, "warn"})
		}
	}
	to := func(way string) href { return q.with("seek", way, "line", itoa(at), "top", "", "from", "") }
	return append(append(blocks, links{{Text: "previous error", To: to("previous")}, {Text: "next error", To: to("next")}}), shown...), nil
}

// levels returns where the lines of a log begin, and their histogram, which is made with the list.
func (q *request) levels(o *opened) (*list, *histogram) {
	mine := &histogram{}
	l := q.listBeside(o, "levels", mine, func(o *opened) (walk, error) {
		r, err := o.from(0)
		return func(ctx context.Context, visit func(int64, int64) bool) error {
			return eachLine(ctx, r, func(n, start int64, m *logs.Marks) bool {
				mine.add(n, m)
				return visit(n-1, start)
			})
		}, err
	})
	return l, l.beside.(*histogram) //nolint:forcetypeassert // it is of this list
}

// eachLine reads the level and the time of each line, numbered from 1.
func eachLine(ctx context.Context, r io.Reader, visit func(n, start int64, m *logs.Marks) bool) error {
	var m logs.Marks
	for all := record.NewLines(ctx, r, markBytes); ; {
		b, err := all.Next()
		if err == nil {
			if m.Read(b); visit(all.Number, all.At.Start, &m) {
				continue
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	}
}

// seek returns the next line with an error, or the one before, as far as can be read within [patience]: if none is
// found, to is the last line that was read.
func (q *request) seek(o *opened, l *list, at int64, forward bool) (to int64, found bool, err error) {
	end := time.Now().Add(patience)
	scan := func(from, until int64) (err error) {
		known, start := o.LineOffset(from)
		if i, s := l.near(from - 1); i >= known {
			known, start = i+1, s
		}
		r, err := o.from(start)
		if err != nil {
			return err
		}
		return eachLine(q.ctx, r, func(n, _ int64, m *logs.Marks) bool {
			n += known - 1
			if n >= from && n < until && levelClass[m.Level] == "bad" {
				to, found = n, true
			} else if n >= from && forward {
				to = n
			}
			return n < until && !(forward && (found || n%256 == 0 && time.Now().After(end)))
		})
	}
	if to = at; forward {
		return to, found, errors.Join(scan(at+1, 1<<62), err)
	}
	for until := at; until > 1 && !found && err == nil && time.Now().Before(end); until = max(until-seekLines, 1) {
		if err = scan(max(until-seekLines, 1), until); !found {
			to = max(until-seekLines, 1)
		}
	}
	return to, found, err
}
