package viewer

import (
	"bytes"
	"errors"
	"io"
	"maps"
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
	pageReads = 8 << 20  // that are read for them
	lineBytes = 1000     // of a line beside others
	oneLine   = 16 << 10 // of a line that is shown alone
	readLine  = 32 << 10 // of a line that is masked before it is cut
)

// lineAt returns where a line begins, or the last one before it that is known, and how many lines there are, -1 if that
// is unknown. known is 0 if the lines before it are still being read. After the last line is the end of the text.
func (q *request) lineAt(o *opened, n int64) (known, at, total int64) {
	total = -1
	if o.o != nil {
		total = o.o.Stats.Lines
	}
	if n > 1 && (o.o == nil || !o.Plain()) && o.Size >= recordsBytes {
		l := q.listOf(o, "lines", nil, recordsBy(record.LineSpans))
		found, done, _ := l.wait(q.ctx, n)
		if known, at = l.near(n - 1); done {
			total = found
		} else if q.wait = true; found < n {
			return 0, 0, total
		}
		known++
	} else {
		known, at = o.LineOffset(n)
	}
	if total >= 0 && n > total && o.Plain() {
		return n, o.Size, total
	}
	return known, at, total
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
	n, at, total := q.lineAt(o, first)
	out, mask := &lines{Empty: "There is no such line: the text has fewer."}, q.masks()
	if n == 0 {
		out.Empty = "The lines before it are being read."
	} else if o.Size == 0 {
		out.Empty = "The text is empty."
	}
	more, room := false, pageBytes
	part := content.Span{Start: at, End: at + pageReads}
	if n == 0 {
		part.End = at
	}
	err := o.lines(q.ctx, part, readLine, func(in *record.Lines, b []byte) bool {
		number := n + in.Number - 1
		if more = len(out.Lines) == pageLines || room < 0; number >= first && !more {
			one := q.line(o, mask, in, b, number, at)
			one.Found = number == found
			out.Lines, room = append(out.Lines, one), room-len(one.Text)
			more = in.At.End >= pageReads && number != total // the end of this line is not known
		}
		return !more
	})
	next := first + int64(len(out.Lines))
	said := "lines " + grouped(first) + "–" + grouped(next-1)
	if next == first {
		said = "no lines from " + grouped(first)
	}
	if total >= 0 {
		said += " of " + grouped(total)
	}
	if !more {
		total = next - 1
	}
	out.Pager = q.pager(said, "top", 1, first, next, pageLines, total)
	out.Pager.Jump = q.jump("line", "Line", "top", "from")
	return []any{out}, err
}

// line returns the last line that was read, which has the number n, with the address that shows it. They are read from
// an offset on.
func (q *request) line(o *opened, mask *secrets.Stream, in *record.Lines, b []byte, n, from int64) line {
	one := line{N: n, To: q.with("as", "text", "line", itoa(n), "top", "", "from", "")}
	shown, more := cutLine(mask, in, b)
	isStderr := func(at [2]int64) bool { return from+in.At.Start >= at[0] && from+in.At.Start < at[1] }
	if o.o != nil && slices.ContainsFunc(o.o.Stats.Stderr, isStderr) {
		one.Class, shown = "stderr", text.StderrMark+shown
	}
	if in.At.End >= pageReads {
		more = strings.Replace(more, "…", "… over", 1)
	}
	if one.Text = shown; more != "" {
		one.Text += more + ": open the line by its number"
		one.To = q.with("as", "text", "line", itoa(n), "top", "", "from", "0")
	}
	return one
}

// cutLine returns the beginning of the last line that was read, masked, and how much more it has.
func cutLine(mask *secrets.Stream, in *record.Lines, b []byte) (shown, more string) {
	cut := cutAt(mask, b, lineBytes)
	left := int64(len(b) - cut)
	if !in.Whole() {
		left = in.At.End - in.At.Start - int64(cut)
	}
	if left > 0 {
		more = " … " + grouped(left) + " more bytes"
	}
	return string(mask.Text(b[:cut])), more
}

// pager leads through pages of about page parts each, of which this one has those from..next: a parameter says where
// one begins. The first part has the number first; total is how many there are, -1 if that is unknown.
func (q *request) pager(text, parameter string, first, from, next, page, total int64) *pager {
	at := func(n int64) href {
		if parameter == "from" {
			return q.with("from", itoa(n))
		}
		return q.with("top", "", "line", "", "record", "", "from", "", parameter, itoa(n))
	}
	p := &pager{Text: text}
	if from > first {
		p.First, p.Prev = at(first), at(max(from-page, first))
	}
	if total < 0 || next < first+total {
		p.Next = at(next)
	}
	if total > 0 && next < first+total {
		p.Last = at(max(first+total-page, first))
	}
	return p
}

// jump returns a form that sets one parameter of this page, and removes others.
func (q *request) jump(name, label string, without ...string) *form {
	f := &form{To: q.url(strings.Join(q.path, "/")), Submit: "Go"}
	for _, other := range slices.Sorted(maps.Keys(q.query)) {
		if other != name && !slices.Contains(without, other) {
			f.Fields = append(f.Fields, field{Name: other, Value: q.query.Get(other), Hidden: true})
		}
	}
	f.Fields = append(f.Fields, field{Name: name, Label: label, Value: q.query.Get(name), Size: 8})
	return f
}

// longLine shows a part of one line.
func (q *request) longLine(o *opened, number int64) ([]any, error) {
	known, start, total := q.lineAt(o, number)
	next, end, _ := q.lineAt(o, number+1)
	var err error
	switch {
	case total >= 0 && number > total:
		err = io.EOF
	case known == 0 || next == 0:
		return []any{note{"The lines before it are being read.", ""}}, nil
	case known < number || next <= number: // it is read to find its end
		from, read := start, false
		err = o.lines(q.ctx, content.Span{Start: from, End: 1 << 62}, 1, func(in *record.Lines, _ []byte) bool {
			start, end, read = from+in.At.Start, from+in.At.End, known+in.Number-1 == number
			return !read
		})
		if err == nil && !read {
			err = io.EOF
		}
	default:
		var b []byte
		b, err = o.bytesAt(max(end-2, start), min(2, end-start))
		end -= int64(len(b) - len(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))))
	}
	if errors.Is(err, io.EOF) {
		err = problemf(http.StatusNotFound, "The text has no line %d.", number)
	}
	if err != nil {
		return nil, err
	}
	return q.window(o, content.Span{Start: start, End: end}, "line "+grouped(number))
}

// partOf returns about n bytes of a span from an offset on, and that offset, so that neither edge is within a secret.
func (q *request) partOf(o *opened, at content.Span, from, n int64) (b []byte, start int64, err error) {
	before := min(from, oneLine)
	b, err = o.bytesAt(at.Start+from-before, min(before+n+oneLine, max(at.End-at.Start-from+before, 0)))
	mask := q.masks()
	lead := min(mask.SafeCut(b, int(before)), len(b))
	b = b[lead:]
	return b[:cutAt(mask, b, int(n))], from - before + int64(lead), err
}

// window shows a part of a span of a text, from a byte of it on.
func (q *request) window(o *opened, at content.Span, name string) ([]any, error) {
	length := at.End - at.Start
	b, from, err := q.partOf(o, at, min(q.number("from", 0), length), oneLine)
	p := q.bytePager(name, from, int64(len(b)), oneLine, length)
	return []any{section{Blocks: []any{pre(q.masks().Text(b)), p}}}, err
}

// bytePager leads through a range of bytes by pages, of which one has n bytes and begins at from.
func (q *request) bytePager(name string, from, n, page, length int64) *pager {
	text := name + ", bytes " + grouped(from) + "–" + grouped(from+n) + " of " + grouped(length)
	p := q.pager(text, "from", 0, from, from+n, page, length)
	p.Jump = q.jump("from", "Byte")
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
