// Package record writes the records of a text as JSON objects, one a line, for filters to read.
//
// The packages of the kinds (diff, logs, gitlog) decide what a record holds.
package record

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// MaxLine is the longest line, in bytes, that a record can hold.
const MaxLine = 16 << 20

// Lines reads a text line by line.
type Lines struct {
	ctx  context.Context
	r    *bufio.Reader
	text []byte
	max  int

	Number  int64        // of the current line, from 1
	At      content.Span // of the current line, without its ending
	Unended bool         // the text ends in the current line, which has no ending
	next    int64        // offset of the line after it
}

// NewLines returns a reader of lines that holds at most max bytes of each.
func NewLines(ctx context.Context, r io.Reader, max int) *Lines {
	return &Lines{ctx: ctx, r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// Next returns the next line without its ending "\n" or "\r\n", truncated to the maximum. The line is valid until the
// next call. At the end of the text the error is io.EOF.
func (l *Lines) Next() ([]byte, error) {
	l.text = l.text[:0]
	var size, ending int64
	var before byte // the last byte of the part before
	for {
		part, err := l.r.ReadSlice('\n')
		size += int64(len(part))
		l.text = append(l.text, part[:min(len(part), l.max+2-len(l.text))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			if err := l.ctx.Err(); err != nil {
				return nil, err
			}
			before = part[len(part)-1]
			continue
		}
		if err != nil && (err != io.EOF || size == 0) {
			return nil, err
		}
		if err == nil {
			ending = 1
			if len(part) > 1 {
				before = part[len(part)-2]
			}
			if before == '\r' && size > 1 {
				ending = 2
			}
		}
		break
	}
	if l.Number++; l.Number%1024 == 0 && l.ctx.Err() != nil {
		return nil, l.ctx.Err()
	}
	l.At = content.Span{Start: l.next, End: l.next + size - ending}
	l.next += size
	l.Unended = ending == 0
	return l.text[:min(size-ending, int64(l.max))], nil
}

// Whole reports whether Next returned all of the current line.
func (l *Lines) Whole() bool { return l.At.End-l.At.Start <= int64(l.max) }

// Object builds one JSON object. Its zero value is an empty one.
type Object struct{ b []byte }

func (o *Object) key(name string) {
	sep := byte(',')
	if len(o.b) == 0 {
		sep = '{'
	}
	o.b = append(Quote(append(o.b, sep), name), ':')
}

// String adds a string; bytes that are not UTF-8 become U+FFFD.
func (o *Object) String(name, value string) {
	o.key(name)
	o.b = Quote(o.b, value)
}

// StringOrNull adds a string, or null for "".
func (o *Object) StringOrNull(name, value string) {
	if value == "" {
		o.Raw(name, "null")
		return
	}
	o.String(name, value)
}

// Int adds a number.
func (o *Object) Int(name string, value int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

// Raw adds a JSON value as it is.
func (o *Object) Raw(name, value string) {
	o.key(name)
	o.b = append(o.b, value...)
}

// Scalar adds a JSON number as it is written, and anything else as a string.
func (o *Object) Scalar(name, value string) {
	if IsNumber(value) {
		o.Raw(name, value)
		return
	}
	o.String(name, value)
}

// Text returns the object.
func (o *Object) Text() string {
	if len(o.b) == 0 {
		return "{}"
	}
	return string(o.b) + "}"
}

// WriteLine writes the object as a line and empties it.
func (o *Object) WriteLine(w io.Writer) error {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	}
	o.b = append(o.b, "}\n"...)
	_, err := w.Write(o.b)
	o.b = o.b[:0]
	return err
}

// Quote appends a JSON string to b; bytes that are not UTF-8 become U+FFFD.
func Quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error only says that bytes were replaced
	return b
}

// IsNumber reports whether s is a number as JSON writes it: 007 and +5 are none. The exponent has at most 3 digits.
func IsNumber(s string) bool { return number().MatchString(s) }

var number = content.Pattern(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

// Without returns a [*content.Remarks] that names the fields that most records lack; nil if there are none.
func Without(records int64, without map[string]int64) error {
	notes := map[string]string{}
	for field, n := range without {
		if 2*n > records {
			notes[field] = fmt.Sprintf("%d of %s no %s", n, content.Plural(records, "record has", "records have"), field)
		}
	}
	if len(notes) == 0 {
		return nil
	}
	return &content.Remarks{OfFields: notes}
}

// TextLines writes each line as {"line": 1, "text": "…"}, lines numbered from 1. The error of a text with lines is a
// [*content.Remarks]: none has the time and the level of a log.
func TextLines(ctx context.Context, r io.Reader, w io.Writer) error {
	lines := NewLines(ctx, r, MaxLine)
	var o Object
	for {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return Without(lines.Number, map[string]int64{"time": lines.Number, "level": lines.Number})
		}
		if err != nil {
			return err
		}
		if err := lines.Check(); err != nil {
			return err
		}
		o.Int("line", lines.Number)
		o.String("text", string(text))
		if err := o.WriteLine(w); err != nil {
			return err
		}
	}
}

// NumberedLines writes each JSON value of NDJSON in an array, after the number of its line: [7,{"a":1}]. A line that
// is not one value is an error.
func NumberedLines(ctx context.Context, r io.Reader, w io.Writer) error {
	lines := NewLines(ctx, r, MaxLine)
	for {
		text, err := lines.Next()
		if err != nil {
			return end(err)
		}
		if err := lines.Check(); err != nil {
			return err
		}
		text = bytes.TrimSpace(text)
		switch {
		case len(text) == 0:
			continue
		case !isValue(text):
			return fmt.Errorf("line %d is not one JSON value, so the numbers of lines are not known", lines.Number)
		}
		if _, err := fmt.Fprintf(w, "[%d,%s]\n", lines.Number, text); err != nil {
			return err
		}
	}
}

// isValue reports whether a text is one JSON value, as decoders of filters take it.
func isValue(text []byte) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Check returns an error if the current line is too long to be held whole.
func (l *Lines) Check() error {
	if l.Whole() {
		return nil
	}
	return fmt.Errorf("line %d is longer than %d MiB; slice and grep read parts of it", l.Number, l.max>>20)
}

func end(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// LineSpans calls visit with the number (from 0) and the place of each line until visit returns false.
func LineSpans(ctx context.Context, r io.Reader, visit func(index int64, at content.Span) bool) error {
	lines := NewLines(ctx, r, 0)
	for {
		if _, err := lines.Next(); err != nil {
			return end(err)
		}
		if !visit(lines.Number-1, lines.At) {
			return nil
		}
	}
}
