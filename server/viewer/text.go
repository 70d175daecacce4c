package viewer

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
)

const (
	pageLines = 100
	pageBytes = 48 << 10 // of the lines of a page
	lineBytes = 1000     // of a line beside others
	oneLine   = 16 << 10 // of a line that is shown alone
	readLine  = 32 << 10 // of a line that is masked before it is cut
)

// lineCount returns the number of lines of a text; -1 if it is not known.
func (o *opened) lineCount() int64 {
	if o.o != nil {
		return o.o.Stats.Lines
	}
	return -1
}

// textLine is a line of a text.
type textLine struct {
	n     int64 // from 1
	start int64 // its offset in the text
	shown string
	more  int64 // bytes that are left out of shown
}

// readLines calls visit for the lines of a text from a number on, masked and cut, until visit returns false.
func (q *request) readLines(o *opened, first int64, visit func(textLine) bool) error {
	number, at := o.LineOffset(first)
	r, err := o.from(at)
	if err != nil {
		return err
	}
	mask := q.masks()
	lines := record.NewLines(q.ctx, r, readLine)
	for ; ; number++ {
		b, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if number < first {
			continue
		}
		cut := cutAt(mask, b, lineBytes)
		one := textLine{n: number, start: at + lines.At.Start, shown: string(mask.Text(b[:cut]))}
		one.more = lines.At.End - lines.At.Start - int64(cut)
		if !visit(one) {
			return nil
		}
	}
}

// cutAt returns where a text can be cut near n: neither in a secret nor in a character.
func cutAt(mask *secrets.Stream, b []byte, n int) int {
	if len(b) <= n {
		return len(b)
	}
	return max(text.CutBefore(b, mask.SafeCut(b, n)), 1)
}

// textView shows the lines of a text.
func textView(q *request, o *opened) ([]any, error) {
	found := q.number("line", 0)
	if q.query.Has("from") && found > 0 {
		return q.longLine(o, found)
	}
	first := max(q.number("top", found-5), 1)
	out, room, next := &lines{Empty: "There is no such line: the text has fewer."}, pageBytes, int64(0)
	err := q.readLines(o, first, func(l textLine) bool {
		if len(out.Lines) == pageLines || room < len(l.shown) && len(out.Lines) > 0 {
			next = l.n
			return false
		}
		room -= len(l.shown)
		out.Lines = append(out.Lines, q.line(o, l, l.n == found))
		return true
	})
	if o.Size == 0 {
		out.Empty = "The text is empty."
	}
	out.Pager = q.linePager(first, first+int64(len(out.Lines))-1, next, o.lineCount())
	return []any{out}, err
}

// line returns a line with the address that shows it.
func (q *request) line(o *opened, l textLine, found bool) line {
	n := itoa(l.n)
	one := line{N: l.n, To: q.with("as", "text", "line", n, "top", "", "from", ""), Text: l.shown, Found: found}
	if o.o != nil && slices.ContainsFunc(o.o.Stats.Stderr, func(at [2]int64) bool { return l.start >= at[0] && l.start < at[1] }) {
		one.Class, one.Text = "stderr", text.StderrMark+one.Text
	}
	if l.more > 0 {
		one.Text += " … " + grouped(l.more) + " more bytes: open the line by its number"
		one.To = q.with("as", "text", "line", n, "top", "", "from", "0")
	}
	return one
}

// linePager leads through pages of lines; next is 0 on the last one, total -1 if it is unknown.
func (q *request) linePager(first, last, next, total int64) *pager {
	at := func(n int64) href { return q.with("top", itoa(n), "line", "", "from", "") }
	p := &pager{Text: "lines " + grouped(first) + "–" + grouped(last), Jump: q.jump("line", "Line", "top", "from")}
	if total >= 0 {
		p.Text += " of " + grouped(total)
	}
	if first > 1 {
		p.First, p.Prev = at(1), at(max(first-pageLines, 1))
	}
	if next > 0 {
		p.Next = at(next)
		if total > pageLines {
			p.Last = at(total - pageLines + 1)
		}
	}
	return p
}

// jump returns a form that sets one parameter of this page, and removes others.
func (q *request) jump(name, label string, without ...string) *form {
	f := &form{To: q.url(strings.Join(q.path, "/")), Submit: "Go"}
	for _, other := range sortedNames(q.query) {
		if other != name && !slices.Contains(without, other) {
			f.Fields = append(f.Fields, field{Name: other, Value: q.query.Get(other), Hidden: true})
		}
	}
	f.Fields = append(f.Fields, field{Name: name, Label: label, Value: q.query.Get(name), Size: 8})
	return f
}

// longLine shows a part of one line.
func (q *request) longLine(o *opened, number int64) ([]any, error) {
	known, at := o.LineOffset(number)
	r, err := o.from(at)
	if err != nil {
		return nil, err
	}
	if known == number && number == o.lineCount() && o.Plain() { // the end is known without reading it
		last, err := o.bytesAt(max(o.Size-1, at), 1)
		end := o.Size - int64(bytes.Count(last, []byte("\n")))
		if err != nil {
			return nil, err
		}
		return q.window(o, content.Span{Start: at, End: end}, "line "+grouped(number))
	}
	l := record.NewLines(q.ctx, r, 1)
	for ; err == nil && known <= number; known++ {
		_, err = l.Next()
	}
	if errors.Is(err, io.EOF) {
		err = problemf(http.StatusNotFound, "The text has no line %d.", number)
	}
	if err != nil {
		return nil, err
	}
	return q.window(o, content.Span{Start: at + l.At.Start, End: at + l.At.End}, "line "+grouped(number))
}

// window shows a part of a span of a text, from a byte of it on.
func (q *request) window(o *opened, at content.Span, name string) ([]any, error) {
	from, length := q.number("from", 0), at.End-at.Start
	b, err := o.bytesAt(at.Start+from, min(readLine, max(length-from, 0)))
	if err != nil {
		return nil, err
	}
	mask := q.masks()
	cut := int64(cutAt(mask, b, oneLine))
	p := q.bytePager(name, from, cut, oneLine, length)
	return []any{section{Blocks: []any{pre(mask.Text(b[:cut])), p}}}, nil
}

// bytePager leads through a range of bytes by pages, of which one has n bytes and begins at from.
func (q *request) bytePager(name string, from, n, page, length int64) *pager {
	text := name + ", bytes " + grouped(from) + "–" + grouped(from+n) + " of " + grouped(length)
	p := &pager{Text: text, Jump: q.jump("from", "Byte")}
	if from > 0 {
		p.First, p.Prev = q.with("from", "0"), q.with("from", itoa(max(from-page, 0)))
	}
	if from+n < length {
		p.Next, p.Last = q.with("from", itoa(from+n)), q.with("from", itoa(max(length-page, 0)))
	}
	return p
}

// wholeLines returns the lines of a text that is held in full.
func wholeLines(s string) *lines {
	out := &lines{Empty: "It is empty."}
	for one := range strings.Lines(s) {
		out.Lines = append(out.Lines, line{Text: strings.TrimRight(one, "\r\n")})
	}
	return out
}

// clip returns the beginning of a text in one line, masked before it is cut to about n bytes.
func (q *request) clip(b []byte, n int) string { return strings.Join(strings.Fields(q.cut(b, n)), " ") }

// cut returns the beginning of a text, masked before it is cut to about n bytes.
func (q *request) cut(b []byte, n int) string {
	mask := q.masks()
	cut := cutAt(mask, b, n)
	shown := string(mask.Text(b[:cut]))
	if cut < len(b) {
		shown += " …"
	}
	return shown
}
