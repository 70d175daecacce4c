package secrets

import (
	"bytes"
	"encoding/json"
)

// decode reads one JSON value, its numbers as written.
func decode(raw json.RawMessage) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

// view is a text with the escapes of JSON undone that stand for printable ASCII ("\u0041", "\/"), for these hide a
// format's letters. Quotes and backslashes stay escaped, so that what ends a string still does.
type view struct {
	b   []byte
	pos []int // of each byte of b, and of its end, in the text; nil: b is the text
}

// unescaped makes the view of b.
func unescaped(b []byte) view {
	i, c, n := nextEscape(b, 0)
	if i < 0 {
		return view{b: b}
	}
	v := view{b: make([]byte, 0, len(b)), pos: make([]int, 0, len(b)+1)}
	done := 0
	for i >= 0 {
		v.take(b, done, i)
		v.b, v.pos = append(v.b, c), append(v.pos, i)
		done = i + n
		i, c, n = nextEscape(b, done)
	}
	v.take(b, done, len(b))
	v.pos = append(v.pos, len(b))
	return v
}

func (v *view) take(b []byte, from, to int) {
	v.b = append(v.b, b[from:to]...)
	for i := from; i < to; i++ {
		v.pos = append(v.pos, i)
	}
}

// at is where in the text index i of the view stands.
func (v *view) at(i int) int {
	if v.pos == nil {
		return i
	}
	return v.pos[i]
}

// nextEscape is the first escape from i on that is undone, the character it stands for, and its length; −1 for none. In JSON
// within JSON it has two backslashes, or four, or eight.
func nextEscape(b []byte, i int) (at int, c byte, size int) {
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 {
			break
		}
		i += n
		k := slash.run(b[i:], len(b))
		c, n := unescape(b[i+k-1:])
		switch {
		case n > 0 && (k == 2 || k == 4 || k == 8):
			return i, c, k - 1 + n
		case n > 0 && k%2 == 1: // an escaped backslash escapes nothing
			return i + k - 1, c, n
		}
		i += k
	}
	return -1, 0, 0
}

// unescape takes one escape of printable ASCII; n is 0 where it is something else.
func unescape(b []byte) (c byte, n int) {
	if len(b) > 1 && b[1] == '/' {
		return '/', 2
	}
	if len(b) < 6 || b[1] != 'u' || b[2] != '0' || b[3] != '0' {
		return 0, 0
	}
	high, low := nibble(b[4]), nibble(b[5])
	if high < 0 || low < 0 {
		return 0, 0
	}
	c = byte(high<<4 | low)
	if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
		return 0, 0
	}
	return c, 6
}

func nibble(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
