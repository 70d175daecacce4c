package jq

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder reads JSON values as gojq wants them, one after the other.
//
// Numbers keep their digits: what does not fit an int exactly as written is a
// json.Number. Invalid UTF-8 and lone surrogates become U+FFFD. Of duplicate keys the last one counts.
type decoder struct {
	d       *jsontext.Decoder
	keys    map[string]string // keys seen, so that each is held once
	scratch []byte
	twice   *duplicate
	prefix  int64 // bytes that were put before the text
	base    int64 // of the text's first byte
}

// duplicate is the first key that stood twice in one object.
type duplicate struct {
	Key    string `json:"key"`
	Offset int64  `json:"offset"` // byte after the second one
}

// maxKeys bounds how many keys are remembered.
const maxKeys = 10_000

func newDecoder(r io.Reader) *decoder {
	return &decoder{
		d:    jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		keys: map[string]string{},
	}
}

// kind looks at what comes next without reading it: '[', '{', …; 0 at an error or the end.
func (d *decoder) kind() jsontext.Kind { return d.d.PeekKind() }

// used is how much of the text is read.
func (d *decoder) used() int64 { return max(0, d.d.InputOffset()-d.prefix) }

// offset is how far that is, in the whole text.
func (d *decoder) offset() int64 { return d.base + d.used() }

// next reads what n reads of a value. io.EOF: there is none.
func (d *decoder) next(n *node) (any, error) {
	if n.nothing() {
		return nil, d.skip()
	}
	switch d.d.PeekKind() {
	case '[':
		return d.array(n.element())
	case '{':
		return d.object(n.ofObject())
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
		if err != nil && len(b) == 0 && len(raw) > 2 { // invalid UTF-8 is replaced and told; anything else is not ours
			return nil, err
		}
		return string(b), nil
	default:
		return number(raw), nil
	}
}

// openEnded says that a value of that kind, just read, is a number or literal that the text ends with: nothing tells that it is over.
func (d *decoder) openEnded(kind jsontext.Kind) bool {
	switch kind {
	case '"', '[', '{':
		return false
	}
	return d.d.PeekKind() == 0 && len(d.d.UnreadBuffer()) == 0
}

// take is next, or, blind, only moves over the value.
func (d *decoder) take(n *node, blind bool) (any, error) {
	if blind {
		return nil, d.skip()
	}
	return d.next(n)
}

// skip moves over a value in the steps of next: jsontext's own words on what is wrong depend on them.
func (d *decoder) skip() error {
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
				return unexpected(err)
			}
		}
		if err := d.skip(); err != nil {
			return unexpected(err)
		}
	}
	_, err := d.d.ReadToken()
	return err
}

func (d *decoder) array(element *node) (any, error) {
	if _, err := d.d.ReadToken(); err != nil {
		return nil, err
	}
	a := []any{}
	for d.d.PeekKind() != ']' {
		v, err := d.next(element)
		if err != nil {
			return nil, unexpected(err)
		}
		a = append(a, v)
	}
	_, err := d.d.ReadToken()
	return a, err
}

func (d *decoder) object(n *node) (any, error) {
	if _, err := d.d.ReadToken(); err != nil {
		return nil, err
	}
	m := map[string]any{}
	for d.d.PeekKind() != '}' {
		raw, err := d.d.ReadValue()
		if err != nil {
			return nil, unexpected(err)
		}
		k := d.key(raw)
		at, read := n.member(k)
		if !read {
			if err := d.skip(); err != nil {
				return nil, unexpected(err)
			}
			continue
		}
		v, err := d.next(at)
		if err != nil {
			return nil, unexpected(err)
		}
		if _, ok := m[k]; ok && d.twice == nil {
			d.twice = &duplicate{clip(k), d.offset()}
		}
		m[k] = v
	}
	_, err := d.d.ReadToken()
	return m, err
}

// key returns the name in raw, the same string for the same name.
func (d *decoder) key(raw jsontext.Value) string {
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

// shrink keeps a buffer for the next string unless it has grown out of measure.
func shrink(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b
}

// unexpected: inside a value there is no such thing as a regular end.
func unexpected(err error) error {
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
