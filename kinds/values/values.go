// Package values reads texts that hold values in another form than JSON (YAML, TOML, INI, XML, JUnit reports) and
// returns their records as JSON.
//
// One [Reader] a format serves filters, parts, receipts and the pointers of matching lines. Readers run in this
// process: their parsers are memory-safe, and depth, expansion and the size of a record are bounded.
package values

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of one record.
const (
	MaxRecord = 32 << 20 // bytes of its text, and of its JSON
	maxDepth  = 256      // nested values

	// maxSeparators is the maximum number of line ends, commas, brackets and the like: a parser uses up to 600 bytes for
	// each.
	maxSeparators = 500_000
)

// A Reader calls sink.Value for each record of a UTF-8 text. It stops at the first error: of the sink, of the text
// (which names the line), or of ctx. The error is a [*content.Remarks] if all records were read, but the text is
// damaged or holds something that JSON cannot show.
type Reader func(ctx context.Context, r io.Reader, sink Sink) error

// Sink receives what a [Reader] reads.
type Sink struct {
	// Value receives a record: the number of its first line, from 1, and its JSON without line ends, which is valid
	// until Value returns.
	Value func(line int64, json []byte) error
	// Pointer, if it is set, receives the line of each key and scalar of a record and its JSON Pointer within the
	// record, before the record.
	Pointer func(line int64, pointer string)
}

// Objects writes the records as JSON, one a line.
func (read Reader) Objects(ctx context.Context, r io.Reader, w io.Writer) error {
	return read(ctx, r, Sink{Value: func(_ int64, json []byte) error {
		_, err := fmt.Fprintf(w, "%s\n", json)
		return err
	}})
}

// Numbered writes each record in an array, after the number of its first line: [7,{"a":1}].
func (read Reader) Numbered(ctx context.Context, r io.Reader, w io.Writer) error {
	return read(ctx, r, Sink{Value: func(line int64, json []byte) error {
		_, err := fmt.Fprintf(w, "[%d,%s]\n", line, json)
		return err
	}})
}

// errEnough ends a reader whose caller wants no more.
var errEnough = errors.New("enough")

// Spans visits the records as [Reader.Objects] writes them: a span is that of a line of its output.
func (read Reader) Spans(ctx context.Context, r io.Reader, visit func(index int64, at content.Span) bool) error {
	index, at := int64(0), int64(0)
	err := read(ctx, r, Sink{Value: func(_ int64, json []byte) error {
		end := at + int64(len(json))
		if !visit(index, content.Span{Start: at, End: end}) {
			return errEnough
		}
		index, at = index+1, end+1
		return nil
	}})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// IsSingle reports whether the text has exactly one record. It reads no more than two.
func (read Reader) IsSingle(ctx context.Context, r io.Reader) bool {
	n := 0
	_ = read.Spans(ctx, r, func(int64, content.Span) bool {
		n++
		return n < 2
	})
	return n == 1
}

// guarded returns a reader that turns panics of read into errors: parsers of other projects may panic on broken text.
func guarded(name string, read Reader) Reader {
	return func(ctx context.Context, r io.Reader, sink Sink) (err error) {
		value := sink.Value
		sink.Value = func(line int64, json []byte) error {
			if len(json) > MaxRecord {
				return tooLong(line)
			}
			return value(line, json)
		}
		panics.Into(&err, func() { err = read(ctx, content.WithContext(ctx, r), sink) })
		if c, ok := errors.AsType[*panics.Caught](err); ok {
			return fmt.Errorf("its %s cannot be read: the parser panicked: %v", name, c.Value)
		}
		return err
	}
}

func tooLong(line int64) error {
	return fmt.Errorf("line %d: its JSON is longer than %d MiB; slice and grep read its text", line, MaxRecord>>20)
}

// bounded is a reader that fails if a record has more bytes or separators than the limits. It knows whether it failed,
// because parsers wrap or replace the errors of their readers.
type bounded struct {
	r          io.Reader
	separators map[string]int // what a parser makes values of, and how many
	maxLine    int            // values of one line; 0: any
	size       int64          // bytes of the record so far
	all, line  int            // values of the record, and of its last line
	failed     error
}

func (b *bounded) reset() { b.size, b.all, b.line = 0, 0, 0 }

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	p = p[:n]
	last := bytes.LastIndexByte(p, '\n') + 1
	if last > 0 {
		b.line = 0
	}
	for s, values := range b.separators {
		b.line += values * bytes.Count(p[last:], []byte(s))
		b.all += values * bytes.Count(p, []byte(s))
	}
	switch b.size += int64(n); {
	case b.size > MaxRecord:
		err = fmt.Errorf("a record is longer than %d MiB; slice and grep read its text", MaxRecord>>20)
	case b.all > maxSeparators:
		err = fmt.Errorf("a record has more than %d lines and separators; slice and grep read its text", maxSeparators)
	case b.maxLine > 0 && b.line > b.maxLine:
		err = fmt.Errorf("a record has a line with more than %d separators; slice and grep read its text", b.maxLine)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// readAll reads a text that is one record.
func readAll(r io.Reader, separators map[string]int) ([]byte, error) {
	b := bounded{r: r, separators: separators}
	text, err := io.ReadAll(&b)
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// remarks collects what a reader noticed.
type remarks struct{ formats, notes []string }

// add adds a note, unless there is one of this format.
func (m *remarks) add(format string, args ...any) {
	if !slices.Contains(m.formats, format) {
		m.formats, m.notes = append(m.formats, format), append(m.notes, fmt.Sprintf(format, args...))
	}
}

// err returns the notes as an error, nil if there are none.
func (m *remarks) err() error {
	if len(m.notes) == 0 {
		return nil
	}
	return &content.Remarks{Notes: m.notes}
}

// member returns the pointer of a member of an object, whose key has U+FFFD for bytes that are not UTF-8, as in JSON.
func member(pointer, key string) string { return string(jsontext.Pointer(pointer).AppendToken(key)) }

// element returns the pointer of an element of an array.
func element(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// decimalOf returns a number in decimal digits, with no more of them than tell it from others.
func decimalOf(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
