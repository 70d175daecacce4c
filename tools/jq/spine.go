package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// frame is an array or object that is open where the engine reads, and was taken apart.
type frame struct {
	array bool
	key   string // of an object: of the member that is read
	n     int64  // of an array: elements before this place; of an object: members
	comma int64  // where the comma before this place stands, if n > 0
}

// place is where between the parts of the innermost frame something is read.
type place int

const (
	beforeValue place = iota
	afterValue
	beforeKey // or the end of the object
)

// deepest is how many frames are taken apart; what is deeper is left to the slow decoder.
const deepest = 64

// decoder is the slow decoder, set upon r, which is the text from offset at. It is
// brought to where the engine stands by a text that opens the same arrays and objects, so that it says of what is wrong
// the same as if it had read all.
func (e *engine) decoder(where place, r io.Reader, at int64) *decoder {
	prefix := e.prefix(where)
	d := newDecoder(io.MultiReader(bytes.NewReader(prefix), r))
	d.prefix, d.base = int64(len(prefix)), at
	if e.keys == nil {
		e.keys = d.keys
	}
	d.keys = e.keys
	for last := int64(len(bytes.TrimRight(prefix, ",:"))); d.d.InputOffset() < last; {
		if _, err := d.d.ReadToken(); err != nil {
			break // and is told by what is read next
		}
	}
	return d
}

// prefix is the shortest text that leads where the engine stands.
func (e *engine) prefix(where place) []byte {
	var b []byte
	for i, f := range e.spine {
		inner := i == len(e.spine)-1
		switch {
		case f.array && inner && where == afterValue:
			b = append(b, "[0"...)
		case f.array && f.n > 0:
			b = append(b, "[0,"...)
		case f.array:
			b = append(b, '[')
		case inner && where == beforeKey && f.n > 0:
			b = append(b, `{"":0,`...)
		case inner && where == beforeKey:
			b = append(b, '{')
		default:
			key, _ := json.Marshal(f.key) // a string always can be
			b = append(append(append(b, '{'), key...), ':')
			if inner && where == afterValue {
				b = append(b, '0')
			}
		}
	}
	return b
}

// pointer corrects a pointer of such a decoder: it counts the elements of its own beginning only.
func (e *engine) pointer(p jsontext.Pointer) string {
	parts := strings.Split(string(p), "/")
	for i, f := range e.spine {
		if i+1 >= len(parts) || !f.array {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil {
			continue
		}
		if n += f.n; f.n > 0 {
			n--
		}
		parts[i+1] = strconv.FormatInt(n, 10)
	}
	return strings.Join(parts, "/")
}

// told takes note of a key that a decoder saw twice.
func (e *engine) told(d *decoder) {
	if d.twice != nil {
		e.doubled(*d.twice)
	}
}

func (e *engine) doubled(d duplicate) {
	if e.Twice == nil {
		e.Twice = &d
		e.twice.Store(true)
	}
}

// errBroken: the text is not JSON, as the outcome says.
var errBroken = errors.New("broken")

// syntax turns what is wrong with the text into a place in the outcome, and errBroken.
func (e *engine) syntax(d *decoder, err error) error {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		s = &jsontext.SyntacticError{ByteOffset: d.d.InputOffset(), JSONPointer: d.d.StackPointer(), Err: io.ErrUnexpectedEOF}
	}
	at := d.base + s.ByteOffset - d.prefix
	if at < d.base && len(e.spine) > 0 { // a comma that nothing may follow
		at = e.spine[len(e.spine)-1].comma
	}
	e.Broken = &broken{
		Offset: at, Pointer: middle(e.pointer(s.JSONPointer)),
		Cut: errors.Is(s.Err, io.ErrUnexpectedEOF), Message: clip(s.Err.Error()),
	}
	return errBroken
}

// part takes a record, or a part of one. A number or literal that the text ends with is no part, since it is not complete; as a record jq
// takes it, and it is told.
func (e *engine) part(d *decoder, n *node, blind bool) (any, error) {
	kind := d.kind()
	v, err := d.take(n, blind)
	if err == nil && d.openEnded(kind) {
		if d.d.StackDepth() == 0 {
			e.Open = true
		} else {
			err = unexpected(d.skip())
		}
	}
	return v, err
}

// wrong says what is wrong with what comes next in the window, where something is.
func (e *engine) wrong(w *view, where place) error {
	d := e.decoder(where, io.MultiReader(bytes.NewReader(w.buf[w.i:]), w.r), w.offset())
	for { // in the steps of next
		var err error
		if kind := d.kind(); kind == ']' || kind == '}' {
			_, err = d.d.ReadToken()
		} else {
			_, err = d.d.ReadValue()
		}
		if err != nil {
			return e.syntax(d, unexpected(err))
		}
	}
}

// big reads what n reads of a value that is too large to be held, from its first byte.
func (e *engine) big(w *view, c byte, n *node) (any, error) {
	switch {
	case len(e.spine) >= deepest:
	case c == '[':
		return e.bigArray(w, n)
	case c == '{':
		return e.bigObject(w, n)
	}
	r := io.MultiReader(bytes.NewReader(w.buf[w.i:]), w.r)
	d := e.decoder(beforeValue, r, w.offset())
	v, err := e.part(d, n, false)
	e.told(d)
	if err != nil {
		return nil, e.syntax(d, unexpected(err))
	}
	w.replace(d.d.UnreadBuffer(), d.offset(), r)
	return v, nil
}

func (e *engine) bigArray(w *view, n *node) (any, error) {
	a := []any{}
	s := &sequence{e: e, array: true, node: n.element(), blind: n.nothing()}
	s.unit = func(v any) error {
		a = append(a, v)
		return nil
	}
	err := e.inside(w, frame{array: true}, func() error { return s.drive(w) })
	return a, err
}

// inside runs f within one more frame, whose bracket comes next.
func (e *engine) inside(w *view, f frame, run func() error) error {
	w.i++
	e.spine = append(e.spine, f)
	err := run()
	e.spine = e.spine[:len(e.spine)-1]
	return err
}

func (e *engine) bigObject(w *view, n *node) (any, error) {
	m := map[string]any{}
	at := n.ofObject()
	err := e.members(w, func(key string, c byte) error {
		child, read := at.member(key)
		if !read || n.nothing() {
			_, err := e.value(w, c, &node{})
			return err
		}
		v, err := e.value(w, c, child)
		if err != nil {
			return err
		}
		if _, ok := m[key]; ok {
			e.doubled(duplicate{clip(key), w.offset()})
		}
		m[key] = v
		return nil
	})
	return m, err
}

// members goes through an object, from its bracket on. visit takes the value, whose first byte is c.
func (e *engine) members(w *view, visit func(key string, c byte) error) error {
	return e.inside(w, frame{}, func() error {
		f := &e.spine[len(e.spine)-1]
		for {
			c, err := w.next()
			if err != nil {
				return err
			}
			if c == '}' && f.n == 0 {
				w.i++
				return nil
			}
			key, ok, err := e.name(w)
			if err != nil {
				return err
			}
			if !ok {
				return e.wrong(w, beforeKey)
			}
			f = &e.spine[len(e.spine)-1]
			f.key = key
			if c, err = w.next(); err != nil {
				return err
			}
			if err := visit(key, c); err != nil {
				return err
			}
			f = &e.spine[len(e.spine)-1]
			f.n++
			if c, err = w.next(); err != nil {
				return err
			}
			if c != ',' && c != '}' {
				return e.wrong(w, afterValue)
			}
			if w.i++; c == '}' {
				return nil
			}
			f.comma = w.offset() - 1
		}
	})
}

// name reads a key and its colon; not ok: something else stands there, and the window with it.
func (e *engine) name(w *view) (key string, ok bool, err error) {
	for {
		q := quickText{w.buf, w.i}
		if q.space() == '"' && q.quoted() {
			end := q.i
			if q.space() == ':' {
				b, _ := jsontext.AppendUnquote(nil, w.buf[w.i:end]) // bad UTF-8 is replaced
				w.i = q.i + 1
				return string(b), true, nil
			}
			if q.i < len(w.buf) {
				return "", false, nil
			}
		} else if q.i < len(w.buf) {
			if q.b[q.i] != '"' {
				return "", false, nil
			}
			closed := quickText{w.buf, q.i + 1}
			if _, open := closed.endOfString(); !open {
				return "", false, nil
			}
		}
		if more, err := w.more(); !more {
			return "", false, err
		}
	}
}

// value reads what n reads of a value of any size.
func (e *engine) value(w *view, c byte, n *node) (any, error) {
	q := &e.quick
	for tried := 0; ; {
		if held := len(w.buf) - w.i; held >= 2*tried || w.end {
			tried = held
			q.reset(w.buf[w.i:], false, e.twice.Load())
			if v, ok := q.value(n, 0); ok && q.i < held {
				w.i += q.i
				return v, nil
			}
			if held >= windowMost*w.size || w.end {
				return e.big(w, c, n)
			}
		}
		if _, err := w.more(); err != nil {
			return nil, err
		}
	}
}
