package transcript

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
)

// Bytes are the bytes of a transcript, such as a [bytes.Reader] or an [io.SectionReader] of a file. They may be larger
// than the memory of this process.
type Bytes interface {
	io.ReaderAt
	Size() int64
}

// Span is a part of the bytes of a transcript, or of one of its lines.
type Span = jsontree.Span

// Literal is one JSON string in a line, or with Number −1 another JSON value, whose text is how it is written.
type Literal struct {
	Line   int // from 0
	Number int // of the string values of the line, from 0
	Span       // in the line, with its quotes

	of   *Transcript
	size int    // bytes of its text
	text string // if it is short
}

// shortText is the most bytes of a text that a literal keeps. A longer one is read again when it is asked for.
const shortText = 64

// literal returns a string of a line.
func (t *Transcript) literal(line int, n *jsontree.Node) Literal {
	l := Literal{Line: line, Number: n.Number, Span: n.Span, of: t, size: n.Size}
	if n.Size <= shortText {
		l.text = n.Text
	}
	return l
}

// textOf returns a string of a line; a literal without a text for anything else.
func (t *Transcript) textOf(line int, n *jsontree.Node) Literal {
	if !n.IsString() {
		return Literal{}
	}
	return t.literal(line, n)
}

// asWritten returns a value of a line, whose text is how it is written; a literal without a text for nil.
func (t *Transcript) asWritten(line int, n *jsontree.Node) Literal {
	if n == nil {
		return Literal{}
	}
	return Literal{Line: line, Number: -1, Span: n.Span, of: t, size: n.End - n.Start}
}

// Text returns the text of a string. It is not for concurrent use.
func (l Literal) Text() string {
	switch {
	case l.text != "" || l.size == 0:
		return l.text
	case l.Number < 0:
		return string(l.Raw())
	}
	last := &l.of.last
	if last.text == "" || last.line != l.Line || last.start != l.Start {
		raw := l.Raw()
		text, err := jsontext.AppendUnquote(nil, raw)
		if last.line, last.start, last.text = l.Line, l.Start, string(text); err != nil { // also of text that is no UTF-8
			err = json.Unmarshal(raw, &last.text)
		}
		if err != nil && l.of.err == nil {
			l.of.err = fmt.Errorf("line %d is not as it was: the transcript was changed while it was read", l.Line+1)
		}
	}
	return last.text
}

// Size returns the bytes of the text of a string.
func (l Literal) Size() int { return l.size }

// Raw returns a string as it is written.
func (l Literal) Raw() []byte {
	b := make([]byte, l.End-l.Start)
	from := l.of.starts[l.Line] + int64(l.Start)
	if n, err := l.of.bytes.ReadAt(b, from); n < len(b) && l.of.err == nil {
		l.of.err = fmt.Errorf("line %d cannot be read again: %w", l.Line+1, err)
	}
	return b
}

// Is reports whether a string has a text. It reads no long string for a short text.
func (l Literal) Is(text string) bool {
	return l.size == len(text) && l.Text() == text
}

// Lines returns how many lines the transcript has: a document of an API is one.
func (t *Transcript) Lines() int { return len(t.starts) - 1 }

// Before returns what stands before a byte of a line, in that line.
func (t *Transcript) Before(line, at int) io.Reader {
	return io.NewSectionReader(t.bytes, t.starts[line], int64(at))
}

// Bytes returns the bytes that were read.
func (t *Transcript) Bytes() Bytes { return t.bytes }

// Err returns an error if a text could not be read again. Results of other methods may be wrong then.
func (t *Transcript) Err() error { return t.err }

// Edit replaces a string of a line by raw JSON.
type Edit struct {
	Line int
	Span
	Size int                    // of the JSON, in bytes
	By   func() ([]byte, error) // gives the JSON
}

// NewEdit returns an edit of a line.
func NewEdit(line int, at Span, by []byte) Edit {
	return Edit{line, at, len(by), func() ([]byte, error) { return by, nil }}
}

// edited are the bytes of a transcript with some strings replaced.
type edited struct {
	from   Bytes
	size   int64
	pieces []piece

	last int // the piece whose bytes are made
	made []byte
}

// piece is a part of edited bytes: of the old ones from an offset on, or new ones.
type piece struct {
	at, size int64
	from     int64
	by       func() ([]byte, error)
}

// Apply returns the transcript's bytes with some strings replaced. Edits must not overlap. The bytes are valid as long
// as those of the transcript, and not for concurrent use.
func (t *Transcript) Apply(edits []Edit) Bytes {
	slices.SortFunc(edits, func(a, b Edit) int {
		return int(t.starts[a.Line] + int64(a.Start) - t.starts[b.Line] - int64(b.Start))
	})
	e := &edited{from: t.bytes, last: -1}
	add := func(p piece) {
		if p.at = e.size; p.size > 0 {
			e.pieces = append(e.pieces, p)
			e.size += p.size
		}
	}
	at := int64(0)
	for _, edit := range edits {
		start := t.starts[edit.Line] + int64(edit.Start)
		add(piece{from: at, size: start - at})
		add(piece{size: int64(edit.Size), by: edit.By})
		at = t.starts[edit.Line] + int64(edit.End)
	}
	add(piece{from: at, size: t.bytes.Size() - at})
	return e
}

func (e *edited) Size() int64 { return e.size }

// ReadAt implements [io.ReaderAt].
func (e *edited) ReadAt(b []byte, at int64) (n int, err error) {
	i := sort.Search(len(e.pieces), func(i int) bool { return e.pieces[i].at+e.pieces[i].size > at })
	for ; n < len(b) && i < len(e.pieces) && err == nil; i++ {
		p := e.pieces[i]
		within := at + int64(n) - p.at
		part := b[n:min(int64(len(b)), int64(n)+p.size-within)]
		if p.by == nil {
			var read int
			if read, err = e.from.ReadAt(part, p.from+within); read == len(part) {
				err = nil
			}
			n += read
			continue
		}
		if e.last != i {
			if e.made, err = p.by(); err == nil && int64(len(e.made)) != p.size {
				err = fmt.Errorf("an edit has %d bytes, and not %d", len(e.made), p.size)
			}
			if e.last = i; err != nil {
				e.last = -1
				return n, err
			}
		}
		n += copy(part, e.made[within:])
	}
	if n < len(b) && err == nil {
		err = io.EOF
	}
	return n, err
}
