package continuation

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// inString marks a unit that is a character of a string.
const inString = 1 << 24

// cursor reads a text without what does not matter to JSON: outside of strings it returns one unit for each byte but
// white space, inside of strings one for each character, whether it is written as itself or as an escape. White space
// between two numbers or literals is one blank. An incomplete character or escape at the end of the text is left out.
type cursor struct {
	text   []byte
	at     int  // offset of what is read next
	within bool // inside of a string
	word   bool // the last unit was of a number or literal
	from   int  // offset of the last unit
}

// next returns the next unit; not ok at the end of the text.
func (c *cursor) next() (unit rune, ok bool) {
	blank := false
	for ; c.at < len(c.text) && !c.within; c.at++ {
		b := c.text[c.at]
		if b == ' ' || b == '\n' || b == '\r' || b == '\t' {
			blank = true
			continue
		}
		c.from = c.at
		if blank && c.word && isWord(b) {
			c.word = false
			return ' ', true
		}
		c.at++
		c.word, c.within = isWord(b), b == '"'
		return rune(b), true
	}
	if c.at >= len(c.text) {
		return 0, false
	}
	c.from, c.word = c.at, false
	if c.text[c.at] == '"' {
		c.within = false
		c.at++
		return '"', true
	}
	r, n := character(c.text[c.at:])
	c.at += n
	return r | inString, n > 0
}

// units returns the units of a text, and the offset of each. within says that the text begins inside of a string.
func units(text []byte, within bool) (us []rune, at []int) {
	us, at = make([]rune, 0, len(text)), make([]int, 0, len(text))
	c := cursor{text: text, within: within}
	for {
		u, ok := c.next()
		if !ok {
			return us, at
		}
		us, at = append(us, u), append(at, c.from)
	}
}

// beginsWith reports whether a part begins with all units of a text, and how many these are.
func beginsWith(part, text []byte, within bool) (matched int, ok bool) {
	p, t := cursor{text: part, within: within}, cursor{text: text, within: within}
	for {
		want, more := t.next()
		if !more {
			return matched, true
		}
		if got, ok := p.next(); !ok || got != want {
			return matched, false
		}
		matched++
	}
}

func isWord(c byte) bool {
	return c-'0' < 10 || c|0x20-'a' < 26 || c == '-' || c == '+' || c == '.'
}

// character decodes the first character of the inside of a string, and returns its length; 0 if it is incomplete.
func character(b []byte) (rune, int) {
	if b[0] != '\\' {
		if !utf8.FullRune(b) {
			return 0, 0
		}
		return utf8.DecodeRune(b)
	}
	if len(b) < 2 {
		return 0, 0
	}
	if b[1] != 'u' {
		if k := strings.IndexByte("bfnrt", b[1]); k >= 0 {
			return rune("\b\f\n\r\t"[k]), 2
		}
		return rune(b[1]), 2
	}
	if len(b) < 6 {
		return 0, 0
	}
	high, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	if err != nil {
		return rune(b[1]), 2
	}
	if high < 0xd800 || high > 0xdbff {
		return rune(high), 6
	}
	if len(b) < 12 {
		if len(b) > 6 && b[6] != '\\' {
			return rune(high), 6 // a lone surrogate
		}
		return 0, 0
	}
	low, err := strconv.ParseUint(string(b[8:12]), 16, 32)
	if b[6] != '\\' || b[7] != 'u' || err != nil || low < 0xdc00 || low > 0xdfff {
		return rune(high), 6
	}
	return rune(high-0xd800)<<10 + rune(low-0xdc00) + 0x10000, 12
}

// complete returns the length of the text without an incomplete character or escape at its end. within says whether
// the end is inside of a string.
func complete(text []byte, within bool) int {
	if !within {
		return len(text)
	}
	for i := max(0, len(text)-12); i < len(text); {
		if text[i] != '\\' && !utf8.RuneStart(text[i]) {
			i++
			continue
		}
		if text[i] == '\\' && backslashes(text[:i])%2 == 1 { // the second of a pair
			i++
			continue
		}
		_, n := character(text[i:])
		if n == 0 {
			return i
		}
		i += n
	}
	return len(text)
}

// backslashes returns how many backslashes the text ends with.
func backslashes(text []byte) int {
	n := 0
	for n < len(text) && text[len(text)-1-n] == '\\' {
		n++
	}
	return n
}

// unquote decodes the inside of a string, without an incomplete escape at its end.
func unquote(raw []byte) string {
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(quoted, '"')
	quoted = append(quoted, raw[:complete(raw, true)]...)
	var s string
	if json.Unmarshal(append(quoted, '"'), &s) != nil {
		return string(raw)
	}
	return s
}

// hasPrefix reports whether the units of a begin with all units of prefix.
func hasPrefix(a, prefix []rune) bool {
	return len(a) >= len(prefix) && slices.Equal(a[:len(prefix)], prefix)
}

// matcher finds units in others that arrive one by one, overlapping places too, by the failure function of Knuth,
// Morris and Pratt.
type matcher struct {
	units []rune
	fail  []int32
	k     int // units that match at the moment
}

func newMatcher(us []rune) *matcher {
	fail := make([]int32, len(us)+1)
	for i, k := 1, int32(0); i < len(us); i++ {
		for k > 0 && us[i] != us[k] {
			k = fail[k]
		}
		if us[i] == us[k] {
			k++
		}
		fail[i+1] = k
	}
	return &matcher{units: us, fail: fail}
}

// next takes the next unit, and reports whether all units match up to it.
func (m *matcher) next(u rune) bool {
	for m.k > 0 && (m.k == len(m.units) || m.units[m.k] != u) {
		m.k = int(m.fail[m.k])
	}
	if m.k < len(m.units) && m.units[m.k] == u {
		m.k++
	}
	return m.k == len(m.units)
}

// borders returns the lengths of all suffixes of text that are prefixes of part, longest first.
func borders(text, part []rune) []int {
	m := newMatcher(part)
	for _, u := range text[max(0, len(text)-len(part)):] {
		m.next(u)
	}
	var lengths []int
	for k := m.k; k > 0; k = int(m.fail[k]) {
		lengths = append(lengths, k)
	}
	return lengths
}
