package secrets

import (
	"bytes"
	"math"
)

// class is a set of bytes.
type class [256]bool

// classOf parses ranges as between the brackets of a regular expression: "A-Za-z0-9_-".
func classOf(spec string) *class {
	var c class
	for i := 0; i < len(spec); i++ {
		if i+2 < len(spec) && spec[i+1] == '-' {
			for b := int(spec[i]); b <= int(spec[i+2]); b++ {
				c[b] = true
			}
			i += 2
			continue
		}
		c[spec[i]] = true
	}
	return &c
}

// run returns the number of bytes at the start of b, at most limit, that are in the set.
func (c *class) run(b []byte, limit int) int {
	n := min(len(b), limit)
	for i := range n {
		if !c[b[i]] {
			return i
		}
	}
	return n
}

// cachedRun is the last run of bytes found in a set. A later search from within the run does not scan it again.
type cachedRun struct{ from, to int }

// of returns run(b[i:], limit), where run is [class.run] or [class.value] of always the same set.
func (t *cachedRun) of(run func(b []byte, limit int) int, b []byte, i, limit int) int {
	if i < t.from || i > t.to {
		*t = cachedRun{i, i}
	}
	if stop := min(len(b), i+limit); t.to < stop {
		t.to += run(b[t.to:], stop-t.to)
	}
	return min(t.to-i, limit)
}

// back returns the number of bytes at the end of b, at most limit, that are in the set.
func (c *class) back(b []byte, limit int) int {
	n := min(len(b), limit)
	for i := range n {
		if !c[b[len(b)-1-i]] {
			return i
		}
	}
	return n
}

var (
	alnum     = classOf("A-Za-z0-9")
	urlSafe   = classOf("A-Za-z0-9_-")
	base64Set = classOf("A-Za-z0-9+/=")
	digits    = classOf("0-9")

	hexadecimal = classOf("0-9A-Fa-f")
	nameSet     = classOf("A-Za-z0-9_.-")
	blanks      = classOf(" \t")
	slash       = classOf(`\`)
)

// startsWord reports whether a token may start at i: the byte before i is not a letter or digit, or it belongs to an
// escape, as in "\nTOKEN" or "%3DTOKEN", or to an ANSI colour code.
func startsWord(b []byte, i int) bool {
	if i == 0 || !alnum[b[i-1]] {
		return true
	}
	c := b[i-1]
	switch {
	case i >= 2 && b[i-2] == '\\' && bytes.IndexByte([]byte("nrtbfv0"), c) >= 0:
		return true
	case i >= 3 && b[i-3] == '%' && hexadecimal[c] && hexadecimal[b[i-2]]:
		return true
	case i >= 4 && b[i-4] == '\\' && b[i-3] == 'x' && hexadecimal[c] && hexadecimal[b[i-2]]:
		return true
	case i >= 6 && b[i-6] == '\\' && b[i-5] == 'u':
		return true
	case c == 'm':
		codes := ansiCodes.back(b[:i-1], 16)
		at := i - 1 - codes
		return at >= 2 && b[at-1] == '[' && (b[at-2] == 0x1b || b[at-2] == 'b' || b[at-2] == '3' || b[at-2] == 'e')
	}
	return false
}

var ansiCodes = classOf("0-9;")

// nLogN is a table of n·log2(n), for entropy.
var nLogN = func() (t [checkedBytes + 1]float64) {
	for n := 2; n < len(t); n++ {
		t[n] = float64(n) * math.Log2(float64(n))
	}
	return t
}()

// entropy returns the entropy of the first checkedBytes bytes of b, in bits per byte, from the frequency of each
// byte.
func entropy(b []byte) float64 {
	b = b[:min(len(b), checkedBytes)]
	if len(b) == 0 {
		return 0
	}
	var counts [256]uint8
	sum := 0.0
	for _, c := range b {
		sum += nLogN[counts[c]+1] - nLogN[counts[c]]
		counts[c]++
	}
	return (nLogN[len(b)] - sum) / float64(len(b))
}

// countKinds counts lower-case letters, upper-case letters, digits and all other bytes.
func countKinds(b []byte) (lower, upper, digit, sign int) {
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z':
			lower++
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= '0' && c <= '9':
			digit++
		default:
			sign++
		}
	}
	return lower, upper, digit, sign
}

func distinct(b []byte) int {
	_, n := byteSet(b)
	return n
}

// byteSet returns the set of bytes in b, and the size of the set.
func byteSet(b []byte) (seen class, n int) {
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return seen, n
}

// mayHold reports whether all bytes of s are in the set. If the set is the [byteSet] of a text and the result is
// false, the text does not contain s; this avoids most searches.
func (c *class) mayHold(s []byte) bool {
	return c.run(s, len(s)) == len(s)
}

// unbounded is the maximum length, in bytes, of a part without a limit of its own; no token is longer.
const unbounded = 16 << 10

// checkedBytes is the number of bytes of a token, from its start, that checks such as entropy examine.
const checkedBytes = 64

// maxName is the maximum length of a name, in bytes.
const maxName = 64

// isMixed reports whether b has lower and upper case, digits, and at least the given entropy in bits per byte.
func isMixed(b []byte, bits float64) bool {
	lower, upper, digit, _ := countKinds(b)
	return lower > 0 && upper > 0 && digit > 0 && entropy(b) >= bits
}
