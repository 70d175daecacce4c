package engine

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// container is an open array or object that does not fit the window: the engine reads its elements or members one by
// one.
type container struct {
	array bool
	key   string // key of the current member, if this is an object
	n     int64  // elements or members that were read
	comma int64  // offset of the comma after those, if n > 0
}

// place says what comes next in the innermost container.
type place int

const (
	beforeValue place = iota
	afterValue
	beforeKey // or the end of the object
)

// maxPath is how many containers the engine opens, one in the other; the slow decoder reads deeper values.
const maxPath = 64

// decoder returns a slow decoder of r, which is the text from offset at, inside the open arrays and objects.
func (e *engine) decoder(where place, r io.Reader, at int64) *decode.Decoder {
	if e.keys == nil {
		e.keys = map[string]string{}
	}
	return decode.NewDecoderAt(e.prefix(where), r, at, e.keys)
}

// prefix returns the shortest text that opens the same arrays and objects as the text so far.
func (e *engine) prefix(where place) []byte {
	var b []byte
	for i, f := range e.path {
		inner := i == len(e.path)-1
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

// pointer corrects a JSON Pointer of a slow decoder, which counts the array elements only from the prefix on.
func (e *engine) pointer(p string) string {
	parts := strings.Split(p, "/")
	for i, f := range e.path {
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

// noteDuplicate records the first duplicate key of a run; nil is none.
func (e *engine) noteDuplicate(d *decode.Duplicate) {
	if e.Twice == nil && d != nil {
		e.Twice = d
		e.twice.Store(true)
	}
}

// errBroken means that the text is not JSON; the outcome has the place.
var errBroken = errors.New("broken")

// syntax records a syntax error in the outcome and returns errBroken; an error of the reader is returned as it is.
func (e *engine) syntax(d *decode.Decoder, err error) error {
	b := d.Broken(err)
	if b == nil {
		return err
	}
	if b.Offset < d.Base && len(e.path) > 0 { // the error is the comma before the text of d
		b.Offset = e.path[len(e.path)-1].comma
	}
	b.Pointer = decode.Middle(e.pointer(b.Pointer))
	e.Broken = b
	return errBroken
}

// decodeComplete decodes the parts that n reads of a record, or of a value inside a record. A number or literal at the
// end of the text may be cut off: a record is accepted, as in jq, and the outcome mentions it; inside a record it is an
// error.
func (e *engine) decodeComplete(d *decode.Decoder, n *decode.Projection) (any, error) {
	kind := d.Kind()
	v, err := d.Next(n)
	if err == nil && d.OpenEnded(kind) {
		if !d.Inside() {
			e.Open = true
		} else {
			err = decode.Unexpected(d.Skip())
		}
	}
	return v, err
}

// findError records the syntax error that comes next in the window.
func (e *engine) findError(w *decode.Window, where place) error {
	d := e.decoder(where, w.Rest(), w.Offset())
	return e.syntax(d, d.FindError())
}
