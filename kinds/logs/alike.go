package logs

import (
	"encoding/binary"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// parsed describes the last parsed line. A line that differs from it only in digits has the same level, its time at the
// same place and the same pattern. size is 0 if such a line must be parsed too, as lines with an HTTP status, those of
// a block with [marks] and those of a running test must.
type parsed struct {
	size           int // bytes of the line and its newline
	from, to, rest int // results of [stamp]
	level          level
}

// acceptAlike accepts the leading lines of p that equal the line before them except for digits, as the lines of
// counters and of loops do, and returns their length in bytes. It only updates counters. p is a suffix of the current
// block.
func (l *logs) acceptAlike(p []byte) int {
	s := &l.parsed
	at := len(l.block.text) - len(p)
	if s.size == 0 || at < s.size || l.block.text[at-2] == '\r' {
		return 0
	}
	n := alike(l.block.text, at, s.size)
	if n == 0 {
		return 0
	}
	size := int64(s.size)
	l.levels[s.level] += int64(n)
	for i := 0; i < n; {
		line := p[i*s.size:][:s.size-1]
		l.rows.Number++
		l.read += size
		more := l.patterns.matchRun(line[s.rest:], l.rows.Number, s.level, l.read, size, int64(n-i-1))
		l.rows.Number += more
		l.read += more * size
		i += 1 + int(more)
	}
	last := p[(n-1)*s.size:][:s.size-1]
	if s.to > 0 {
		l.times.add(int64(n), last[s.from:s.to])
	}
	if s.level >= failure {
		l.errors.add(int64(n), l.rows.Number, last)
	}
	l.panics.setPrevious(l.rows.Number, last[s.rest:])
	return n * s.size
}

// alike returns how many lines at block[at] equal the line of size bytes that ends there except for digits.
func alike(block []byte, at, size int) int {
	begin, line := at, block[at-size:at]
	at += int(digest.EqualLines(block, at, size)) * size
	for at+size <= len(block) && sameButDigits(line, block[at:]) {
		at += size
	}
	return (at - begin) / size
}

// sameButDigits reports whether a text, which is at least as long as start, begins with it but for other digits.
func sameButDigits(start, text []byte) bool {
	i := 0
	for ; i+8 <= len(start); i += 8 {
		if !sameEight(binary.LittleEndian.Uint64(start[i:]), binary.LittleEndian.Uint64(text[i:])) {
			return false
		}
	}
	for ; i < len(start); i++ {
		if c, d := start[i], text[i]; c != d && (c-'0' > 9 || d-'0' > 9) {
			return false
		}
	}
	return true
}

// sameEight is [sameButDigits] for eight bytes each.
func sameEight(a, b uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	x := a ^ b
	if x&(0xf0*ones) != 0 { // two digits differ only in their low half
		return false
	}
	a ^= '0' * ones // a digit is its value now
	b ^= '0' * ones
	noDigit := (a&^high + 0x76*ones) | a | (b&^high + 0x76*ones) | b
	differ := x + 0x7f*ones
	return differ&noDigit&high == 0
}
