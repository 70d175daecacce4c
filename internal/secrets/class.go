package secrets

import (
	"bytes"
	"math"
)

// class is a set of bytes.
type class [256]bool

// classOf reads ranges as a regular expression has them between brackets: "A-Za-z0-9_-".
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

// run is how many bytes at the beginning of b, at most limit, are of the class.
func (c *class) run(b []byte, limit int) int {
	n := min(len(b), limit)
	for i := range n {
		if !c[b[i]] {
			return i
		}
	}
	return n
}

// stretch is a run of one class that was looked at already, so that looks from within it need not go over it again.
type stretch struct{ from, to int }

// run is c.run(b[i:], limit).
func (t *stretch) run(c *class, b []byte, i, limit int) int {
	if i < t.from || i > t.to {
		*t = stretch{i, i}
	}
	stop := min(len(b), i+limit)
	for t.to < stop && c[b[t.to]] {
		t.to++
	}
	return min(t.to, stop) - i
}

// value is c.value(b[i:], limit).
func (t *stretch) value(c *class, b []byte, i, limit int) int {
	if i < t.from || i > t.to {
		*t = stretch{i, i}
	}
	if stop := min(len(b), i+limit); t.to < stop {
		t.to += c.value(b[t.to:], stop-t.to)
	}
	return min(t.to-i, limit)
}

// back is how many bytes at the end of b, at most limit, are of the class.
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
)

// startsWord says that a token may begin at i: what stands before is no letter or digit, or belongs to an escape, as in
// "\nTOKEN", "%3DTOKEN" and an ANSI colour before it.
func startsWord(b []byte, i int) bool {
	if i == 0 || !alnum[b[i-1]] {
		return true
	}
	c := b[i-1]
	switch {
	case i >= 2 && b[i-2] == '\\' && bytes.IndexByte([]byte("nrtbfv0"), c) >= 0:
		return true
	case i >= 3 && b[i-3] == '%' && nibble(c) >= 0 && nibble(b[i-2]) >= 0:
		return true
	case i >= 4 && b[i-4] == '\\' && b[i-3] == 'x' && nibble(c) >= 0 && nibble(b[i-2]) >= 0:
		return true
	case i >= 6 && b[i-6] == '\\' && b[i-5] == 'u':
		return true
	case c == 'm':
		codes := classOfCodes.back(b[:i-1], 16)
		at := i - 1 - codes
		return at >= 2 && b[at-1] == '[' && (b[at-2] == 0x1b || b[at-2] == 'b' || b[at-2] == '3' || b[at-2] == 'e')
	}
	return false
}

var classOfCodes = classOf("0-9;")

// logs are n·log2(n), for entropy.
var logs = func() (t [checked + 1]float64) {
	for n := 2; n < len(t); n++ {
		t[n] = float64(n) * math.Log2(float64(n))
	}
	return t
}()

// entropy of the first checked bytes of b in bits a byte, by how often each byte is in them.
func entropy(b []byte) float64 {
	b = b[:min(len(b), checked)]
	if len(b) == 0 {
		return 0
	}
	var counts [256]uint8
	sum := 0.0
	for _, c := range b {
		sum += logs[counts[c]+1] - logs[counts[c]]
		counts[c]++
	}
	return (logs[len(b)] - sum) / float64(len(b))
}

// kinds counts which of lower case, upper case, digits and signs are there.
func kinds(b []byte) (lower, upper, digit, sign int) {
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
	_, n := bytesIn(b)
	return n
}

// bytesIn says which bytes are in b, and how many.
func bytesIn(b []byte) (seen class, n int) {
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return seen, n
}

// mayHold says that the bytes of a text, as [bytesIn] tells them, do not rule out that s stands in it.
// Most texts are ruled out so, and need not be searched.
func (c *class) mayHold(s []byte) bool {
	for _, b := range s {
		if !c[b] {
			return false
		}
	}
	return true
}

// standIns are what documents write where a secret would be; none of them stands in a random token by chance.
var standIns = [][]byte{
	[]byte("example"), []byte("placeholder"), []byte("changeme"), []byte("change-me"), []byte("change_me"), []byte("redacted"), []byte("replace"),
	[]byte("${"), []byte("{{"), []byte("$("), []byte("<"), []byte("…"), []byte("not-a-"), []byte("notreal"), []byte("abcdefgh"), []byte("12345678901234567890"),
}

// shortStandIns are the same, but so short that one of some ten thousand random tokens has one of them, in some case.
var shortStandIns = [][]byte{[]byte("your"), []byte("xxxx"), []byte("****"), []byte("...."), []byte("masked"), []byte("dummy"), []byte("insert")}

// standIn says that b is written in place of a secret: "EXAMPLE", "your-token-here", "xxxxxxxx", "${TOKEN}".
func standIn(b []byte) bool { return standsFor(b, len(b) >= 24 && mixed(b, 4.2)) }

// standsFor is standIn; where b looks random a short word counts only if it is one by itself, or what is left of b is
// regular.
func standsFor(b []byte, random bool) bool {
	if distinct(b) < 5 {
		return true
	}
	b = b[:min(len(b), checked)]
	var folded [checked]byte
	lower := folded[:copy(folded[:], b)]
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c | 0x20
		}
	}
	seen, _ := bytesIn(lower)
	for _, s := range standIns {
		if seen.mayHold(s) && bytes.Contains(lower, s) {
			return true
		}
	}
	for _, s := range shortStandIns {
		for at := 0; seen.mayHold(s); at++ {
			n := bytes.Index(lower[at:], s)
			if n < 0 {
				break
			}
			if at += n; !random || deliberate(b, at, at+len(s)) {
				return true
			}
		}
	}
	return false
}

// deliberate says that the short stand-in b[from:to] of what looks random was written by somebody.
func deliberate(b []byte, from, to int) bool {
	rest := make([]byte, 0, checked)
	rest = append(append(rest, b[:from]...), b[to:]...)
	if entropy(rest) < 3 {
		return true
	}
	if lower, upper, _, _ := kinds(b[from:to]); lower > 0 && upper > 0 {
		return false
	}
	// A word by itself: it begins b or stands behind a sign, and its case ends with it.
	if from > 0 && alnum[b[from-1]] {
		return false
	}
	first := b[from]
	switch {
	case to == len(b) || !alnum[b[to]]:
		return true
	case first >= 'a' && first <= 'z':
		return from == 0 && b[to] >= 'A' && b[to] <= 'Z'
	}
	return false
}
