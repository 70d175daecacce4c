// Package decode turns JSON text into the values that gojq works on.
//
// A window over the text is cut into chunks, which the fast decoder reads; the slow decoder reads whatever the fast
// one refuses, and words all errors. Both make only the parts of a value that a [Projection] names. Table rows become
// JSON objects here too. The package knows nothing of filters, runs nothing and starts no goroutines.
package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Decoder reads JSON values as gojq wants them, one after the other.
//
// Numbers keep their digits: what does not fit an int exactly as written is a
// json.Number. Invalid UTF-8 and lone surrogates become U+FFFD. Of duplicate keys the last one counts.
type Decoder struct {
	d       *jsontext.Decoder
	keys    map[string]string // keys seen, so that each is held once
	scratch []byte
	Twice   *Duplicate
	prefix  int64 // bytes put before the text
	Base    int64 // offset of the first byte of the text, without prefix
}

// Duplicate is the first key that stood twice in one object.
type Duplicate struct {
	Key    string `json:"key"`
	Offset int64  `json:"offset"` // byte after the second one
}

// Broken says where the text is not JSON.
type Broken struct {
	Offset  int64  `json:"offset"`
	Pointer string `json:"pointer"`
	Cut     bool   `json:"cut"` // the text ends too early
	Message string `json:"message"`
}

// maxKeys is how many keys are kept.
const maxKeys = 10_000

// NewDecoder returns a decoder of the JSON values in r.
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{
		d:    jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		keys: map[string]string{},
	}
}

// NewDecoderAt returns a decoder of r, which is the text from offset at. It starts inside the arrays and objects that
// prefix opens, so that errors read as if the whole text had been read. Decoders with the same keys share strings.
func NewDecoderAt(prefix []byte, r io.Reader, at int64, keys map[string]string) *Decoder {
	d := NewDecoder(io.MultiReader(bytes.NewReader(prefix), r))
	d.prefix, d.Base, d.keys = int64(len(prefix)), at, keys
	for last := int64(len(bytes.TrimRight(prefix, ",:"))); d.d.InputOffset() < last; {
		if _, err := d.d.ReadToken(); err != nil {
			break // the next read reports it
		}
	}
	return d
}

// CheckSyntax returns the first syntax error of a text of JSON values, nil if there is none.
func CheckSyntax(text []byte) *Broken {
	d := NewDecoder(bytes.NewReader(text))
	for {
		if err := d.d.SkipValue(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return d.Broken(err)
		}
	}
}

// Kind looks at what comes next without reading it: '[', '{', …; 0 at an error or the end.
func (d *Decoder) Kind() jsontext.Kind { return d.d.PeekKind() }

// Used is how many bytes of the text are read.
func (d *Decoder) Used() int64 { return max(0, d.d.InputOffset()-d.prefix) }

// offset is the offset in the whole text of the next byte.
func (d *Decoder) offset() int64 { return d.Base + d.Used() }

// Next decodes the parts of the next value that n reads. The error is io.EOF if there is none.
func (d *Decoder) Next(n *Projection) (any, error) {
	if n.Empty() {
		return nil, d.Skip()
	}
	switch d.d.PeekKind() {
	case '[':
		return d.array(n.Element())
	case '{':
		return d.object(n.OfObject())
	}
	raw, err := d.d.ReadValue()
	if err != nil {
		return nil, err
	}
	switch raw.Kind() {
	case 'n':
		return nil, nil
	case 't':
		return true, nil
	case 'f':
		return false, nil
	case '"':
		b, err := jsontext.AppendUnquote(d.scratch[:0], raw)
		d.scratch = shrink(b)
		if err != nil && len(b) == 0 && len(raw) > 2 { // invalid UTF-8 is replaced and reported; other errors stay
			return nil, err
		}
		return string(b), nil
	default:
		return number(raw), nil
	}
}

// OpenEnded reports whether the value just read, of that kind, is a number or literal that ends with the text. It may
// be cut off.
func (d *Decoder) OpenEnded(kind jsontext.Kind) bool {
	switch kind {
	case '"', '[', '{':
		return false
	}
	return d.d.PeekKind() == 0 && len(d.d.UnreadBuffer()) == 0
}

// Skip skips a value in the same steps as Next: the errors of jsontext depend on them.
func (d *Decoder) Skip() error {
	kind := d.d.PeekKind()
	if kind != '[' && kind != '{' {
		_, err := d.d.ReadValue()
		return err
	}
	if _, err := d.d.ReadToken(); err != nil {
		return err
	}
	for d.d.PeekKind() != kind+2 { // the closing one
		if kind == '{' {
			if _, err := d.d.ReadValue(); err != nil {
				return Unexpected(err)
			}
		}
		if err := d.Skip(); err != nil {
			return Unexpected(err)
		}
	}
	_, err := d.d.ReadToken()
	return err
}

// Bracket reads the bracket that comes next.
func (d *Decoder) Bracket() error {
	_, err := d.d.ReadToken()
	return err
}

// Inside reports whether an array or object is open.
func (d *Decoder) Inside() bool { return d.d.StackDepth() > 0 }

// FindError reads on to the next syntax error and returns it. It reads in the same steps as next.
func (d *Decoder) FindError() error {
	for {
		var err error
		if kind := d.Kind(); kind == ']' || kind == '}' {
			_, err = d.d.ReadToken()
		} else {
			_, err = d.d.ReadValue()
		}
		if err != nil {
			return Unexpected(err)
		}
	}
}

// Broken returns the place of a syntax error; nil: err comes from the reader. An offset before base lies in the prefix.
func (d *Decoder) Broken(err error) *Broken {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return nil
		}
		s = &jsontext.SyntacticError{ByteOffset: d.d.InputOffset(), JSONPointer: d.d.StackPointer(), Err: io.ErrUnexpectedEOF}
	}
	return &Broken{
		Offset: d.Base + s.ByteOffset - d.prefix, Pointer: string(s.JSONPointer),
		Cut: errors.Is(s.Err, io.ErrUnexpectedEOF), Message: Clip(s.Err.Error()),
	}
}

func (d *Decoder) array(element *Projection) (any, error) {
	if _, err := d.d.ReadToken(); err != nil {
		return nil, err
	}
	a := []any{}
	for d.d.PeekKind() != ']' {
		v, err := d.Next(element)
		if err != nil {
			return nil, Unexpected(err)
		}
		a = append(a, v)
	}
	_, err := d.d.ReadToken()
	return a, err
}

func (d *Decoder) object(n *Projection) (any, error) {
	if _, err := d.d.ReadToken(); err != nil {
		return nil, err
	}
	m := map[string]any{}
	for d.d.PeekKind() != '}' {
		raw, err := d.d.ReadValue()
		if err != nil {
			return nil, Unexpected(err)
		}
		k := d.key(raw)
		at, read := n.Member(k)
		if !read {
			if err := d.Skip(); err != nil {
				return nil, Unexpected(err)
			}
			continue
		}
		v, err := d.Next(at)
		if err != nil {
			return nil, Unexpected(err)
		}
		if _, ok := m[k]; ok && d.Twice == nil {
			d.Twice = &Duplicate{Clip(k), d.offset()}
		}
		m[k] = v
	}
	_, err := d.d.ReadToken()
	return m, err
}

// key returns the name in raw, the same string for the same name.
func (d *Decoder) key(raw jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(d.scratch[:0], raw)
	d.scratch = shrink(b)
	if k, ok := d.keys[string(b)]; ok {
		return k
	}
	k := string(b)
	if len(d.keys) < maxKeys {
		d.keys[k] = k
	}
	return k
}

// shrink returns a buffer for the next string, nil if it is over 1 MiB.
func shrink(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b
}

// Unexpected returns err, or io.ErrUnexpectedEOF for io.EOF: inside a value the text may not end.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// intDigits is how many digits surely fit an int.
const intDigits = 9 + 9*(strconv.IntSize/64)

// number keeps the digits as they are written.
func number(raw []byte) any {
	digits := raw
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) > intDigits || len(digits) < len(raw) && digits[0] == '0' { // -0 is not 0
		return json.Number(raw)
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return json.Number(raw)
		}
		n = 10*n + int(c-'0')
	}
	if len(digits) < len(raw) {
		n = -n
	}
	return n
}
