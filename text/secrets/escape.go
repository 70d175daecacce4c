package secrets

import (
	"bytes"
	"sort"
	"strconv"
)

// A JSON string escapes quotes, tabs and newlines with a backslash; a JSON string within a JSON string needs several
// backslashes. An escaped quote, tab or newline ends a value like the character itself. A mask never starts or ends
// inside an escape, so that valid JSON stays valid.

// maxSlashes is the maximum number of backslashes that are examined before a character: seven levels of JSON in JSON.
const maxSlashes = 128

// valueSlashes returns the number of backslashes at the start of b that belong to a value. It is 0 if they escape a
// quote, tab or newline, or start a \u escape, at any level of JSON in JSON.
func valueSlashes(b []byte) int {
	k := slash.run(b, maxSlashes)
	if k == maxSlashes || k == len(b) || bytes.IndexByte([]byte("nrtu\"'`"), b[k]) >= 0 {
		return 0
	}
	return k
}

// value is like run, but also accepts backslashes in a value, and stops at an escape that ends the value.
func (c *class) value(b []byte, limit int) int {
	stop := min(len(b), limit)
	i := 0
	for i < stop {
		switch {
		case b[i] == '\\':
			n := valueSlashes(b[i:])
			if n == 0 {
				return i
			}
			i += n
		case c[b[i]]:
			i++
		default:
			return i
		}
	}
	return min(i, stop)
}

// escapeAround returns how many bytes of the escape around i are at or after i, and how many are before i. Both are 0
// if i is not within an escape.
func escapeAround(b []byte, i int) (behind, before int) {
	if i == 0 || i >= len(b) {
		return 0, 0
	}
	if b[i-1] == '\\' {
		end := i + slash.run(b[i:], maxSlashes)
		switch {
		case end < len(b) && b[end] == 'u' && hexadecimal.run(b[end+1:], 4) == 4:
			end += 5
		case end < len(b) && bytes.IndexByte([]byte("nrtbf"), b[end]) >= 0:
			end++
		}
		return end - i, slash.back(b[:i], maxSlashes)
	}
	for k := 1; k < 5 && i-k > 0; k++ {
		if u := i - k; b[u] == 'u' && b[u-1] == '\\' && hexadecimal.run(b[u+1:], 4) == 4 {
			return u + 5 - i, k + slash.back(b[:u], maxSlashes)
		}
	}
	return 0, 0
}

// unopenedLen returns the number of bytes at the end of v that do not belong to the value: commas, semicolons, and
// closing brackets without an opening bracket in v.
func unopenedLen(v []byte) int {
	end := len(v)
	var open [3]int
	for k, pair := range brackets {
		open[k] = bytes.Count(v, pair[:1]) - bytes.Count(v, pair[1:])
	}
	for end > 0 {
		k := bytes.IndexByte([]byte(")]}"), v[end-1])
		switch {
		case k >= 0 && open[k] < 0:
			open[k]++
		case v[end-1] != ',' && v[end-1] != ';':
			return len(v) - end
		}
		end--
	}
	return len(v)
}

var brackets = [3][]byte{[]byte("()"), []byte("[]"), []byte("{}")}

// view is a text in which JSON escapes of printable ASCII ("\u0041", "\/") are decoded, because such escapes would
// hide a token from its matcher. Quotes and backslashes stay escaped, so that strings end where they did.
type view struct {
	b      []byte
	breaks []viewBreak // one after each decoded escape
}

// viewBreak is a position in b and the same in the text: the bytes from there to the next break are those of the text.
type viewBreak struct{ view, text int }

// newView returns the view of b.
func newView(b []byte) view {
	i, c, n := nextEscape(b, 0)
	if i < 0 {
		return view{b: b}
	}
	v := view{b: make([]byte, 0, len(b))}
	done := 0
	for i >= 0 {
		v.b = append(append(v.b, b[done:i]...), c)
		done = i + n
		v.breaks = append(v.breaks, viewBreak{len(v.b), done})
		i, c, n = nextEscape(b, done)
	}
	v.b = append(v.b, b[done:]...)
	return v
}

// at returns the position in the text of index i of the view, which may be its end.
func (v *view) at(i int) int {
	behind := sort.Search(len(v.breaks), func(k int) bool { return v.breaks[k].view > i })
	if behind == 0 {
		return i
	}
	last := v.breaks[behind-1]
	return last.text + i - last.view
}

// nextEscape returns the position, character and length of the first escape from i on that a view decodes; position
// −1 if there is none. In JSON within JSON the escape has two, four or eight backslashes.
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
		case n > 0 && k%2 == 1: // the backslashes before the last one escape each other
			return i + k - 1, c, n
		}
		i += k
	}
	return -1, 0, 0
}

// unescape decodes the escape of a printable ASCII character at the start of b. n is the length of the escape; 0 if b
// does not start with one.
func unescape(b []byte) (c byte, n int) {
	if len(b) > 1 && b[1] == '/' {
		return '/', 2
	}
	if len(b) < 6 || b[1] != 'u' {
		return 0, 0
	}
	code, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil || code <= ' ' || code >= 0x7f || code == '"' || code == '\\' {
		return 0, 0
	}
	return byte(code), 6
}
