// Package decode turns JSON text into the values that gojq works on.
//
// [Decoder] reads one value after the other, and of each only the parts that a [Projection] names.
package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Decoder reads JSON values, one after the other, and returns them as gojq expects them.
//
// A number keeps its digits: it is a json.Number unless it is a short integer. Invalid UTF-8 and lone surrogates become
// U+FFFD. Of duplicate keys the last one counts.
type Decoder struct {
	d       *jsontext.Decoder
	keys    map[string]string // cache of keys: equal keys share one string
	scratch []byte
	Twice   *Duplicate // nil if there is none
	base    int64      // offset of the first byte
	Limit   int64      // offset after which [Decoder.Next] gives up; 0: none
}

// Duplicate is the first key that occurs twice in one object.
type Duplicate struct {
	Key    string `json:"key"`
	Offset int64  `json:"offset"` // of the byte after the second value
}

// Broken says where and why the text is not JSON.
type Broken struct {
	Offset  int64  `json:"offset"`
	Pointer string `json:"pointer"`
	Cut     bool   `json:"cut"` // the text ends inside a value
	Message string `json:"message"`
}

// maxKeys is how many keys a decoder caches.
const maxKeys = 10_000

// NewDecoder returns a decoder of the JSON values in r.
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{
		d:    jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		keys: map[string]string{},
	}
}

// NewDecoderAt returns a decoder of r, which is the text from offset at.
func NewDecoderAt(r io.Reader, at int64) *Decoder {
	d := NewDecoder(r)
	d.base = at
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

// Kind returns the kind of the next token without reading it: '[', '{', …; 0 at an error or the end.
func (d *Decoder) Kind() jsontext.Kind { return d.d.PeekKind() }

// Offset returns the offset of the next byte in the whole text.
func (d *Decoder) Offset() int64 { return d.base + d.d.InputOffset() }

// ErrTooLarge means that a value goes on after the limit of its decoder.
var ErrTooLarge = errors.New("too large")

// Next decodes the parts of the next value that n reads. The error is io.EOF if there is none.
func (d *Decoder) Next(n *Projection) (any, error) {
	if d.Limit > 0 && d.Offset() > d.Limit {
		return nil, ErrTooLarge
	}
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
		if err != nil && len(b) == 0 && len(raw) > 2 { // ignore errors of invalid UTF-8, which is replaced
			return nil, err
		}
		return string(b), nil
	default:
		return number(raw), nil
	}
}

// OpenEnded reports whether the last value, of that kind, is a number or literal at the end of the text, and so may be
// cut off.
func (d *Decoder) OpenEnded(kind jsontext.Kind) bool {
	switch kind {
	case '"', '[', '{':
		return false
	}
	return d.d.PeekKind() == 0 && len(d.d.UnreadBuffer()) == 0
}

// Skip skips a value. It reads the same tokens as Next, because the errors of jsontext depend on them.
func (d *Decoder) Skip() error {
	kind := d.d.PeekKind()
	if kind != '[' && kind != '{' {
		_, err := d.d.ReadValue()
		return err
	}
	if d.Limit > 0 && d.Offset() > d.Limit {
		return ErrTooLarge
	}
	if _, err := d.d.ReadToken(); err != nil {
		return err
	}
	return d.skipRest(kind)
}

// skipRest skips the rest of an array or object that kind has opened.
func (d *Decoder) skipRest(kind jsontext.Kind) error {
	for d.d.PeekKind() != kind+2 { // the closing bracket
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

// Find skips the next value, and returns the offset of the array to which keys lead in it, -1 if they lead to something
// else. Of duplicate keys the last one counts.
func (d *Decoder) Find(keys []string) (at int64, err error) {
	kind := d.d.PeekKind()
	if len(keys) == 0 && kind != '[' || len(keys) > 0 && kind != '{' {
		return -1, d.Skip()
	}
	if _, err := d.d.ReadToken(); err != nil {
		return -1, err
	}
	if len(keys) == 0 {
		return d.Offset() - 1, d.skipRest(kind)
	}
	known := false
	for at = -1; d.d.PeekKind() != '}'; {
		raw, err := d.d.ReadValue()
		if err != nil {
			return -1, Unexpected(err)
		}
		if key := d.key(raw); key != keys[0] {
			err = d.Skip()
		} else {
			at, err = d.Find(keys[1:])
			d.noteDuplicate(key, known)
			known = true
		}
		if err != nil {
			return -1, Unexpected(err)
		}
	}
	_, err = d.d.ReadToken()
	return at, err
}

// noteDuplicate records the first key that was known before in its object.
func (d *Decoder) noteDuplicate(key string, known bool) {
	if known && d.Twice == nil {
		d.Twice = &Duplicate{Clip(key), d.Offset()}
	}
}

// Bracket reads the next bracket.
func (d *Decoder) Bracket() error {
	_, err := d.d.ReadToken()
	return err
}

// Inside reports whether an array or object is open.
func (d *Decoder) Inside() bool { return d.d.StackDepth() > 0 }

// Broken returns the place of a syntax error, nil if err comes from the reader.
func (d *Decoder) Broken(err error) *Broken {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return nil
		}
		s = &jsontext.SyntacticError{ByteOffset: d.d.InputOffset(), JSONPointer: d.d.StackPointer(), Err: io.ErrUnexpectedEOF}
	}
	return &Broken{
		Offset: d.base + s.ByteOffset, Pointer: Middle(string(s.JSONPointer)),
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
		_, known := m[k]
		d.noteDuplicate(k, known)
		m[k] = v
	}
	_, err := d.d.ReadToken()
	return m, err
}

// key returns the key in raw, from the cache if it is there.
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

// shrink returns b for reuse, nil if its capacity is over 1 MiB.
func shrink(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b
}

// Unexpected returns err, or io.ErrUnexpectedEOF for io.EOF: the text must not end inside a value.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// intDigits is how many decimal digits fit an int, whatever they are.
const intDigits = 9 + 9*(strconv.IntSize/64)

// number returns an int for an integer of up to intDigits digits, else a json.Number with the digits of raw. It does
// not use strconv.Atoi, whose errors would be allocated for each number with a fraction.
func number(raw []byte) any {
	digits := bytes.TrimPrefix(raw, []byte{'-'})
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
