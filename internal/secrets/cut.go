package secrets

import "bytes"

// cutOff is what stands where a text was clipped.
var cutOff = []byte("…")

// What else stands there: in errors of jq, and behind the window of a long line in records of search.
var cutSigns = [][]byte{[]byte("..."), []byte(" ..."), []byte(`","column":`), []byte(`\",\"column\":`)}

const (
	minClipped = 8       // bytes of a token that are told by their keyword alone where it was cut
	longLine   = 2 << 10 // what ends a line or a string of so many bytes may be the end of a window
)

// clipped says that b[body:end], which is too short for its format, is a token that somebody cut at end.
func (s *scan) clipped(f *Format, body, end int) bool {
	b := s.b[body:end]
	if bytes.HasPrefix(s.b[end:], cutOff) {
		return len(b) >= 4
	}
	return len(b) >= minClipped && s.cutAt(end) && (f.inWord || jumbled(b)) && !standsFor(b[:min(len(b), checked)], true)
}

// cutAt says that the text was cut at i, as far as what stands there tells.
func (s *scan) cutAt(i int) bool {
	rest := s.b[i:]
	if len(rest) == 0 && !s.final {
		return false
	}
	if i >= longLine { // does a long line end here, or a long text between quotes?
		before := s.b[i-longLine : i]
		if (len(rest) == 0 || rest[0] == '\n') && bytes.LastIndexByte(before, '\n') < 0 || len(rest) > 0 && rest[0] == '"' && bytes.LastIndexByte(before, '"') < 0 {
			return true
		}
	}
	for _, sign := range cutSigns {
		if bytes.HasPrefix(rest, sign) {
			return true
		}
	}
	// The window of a value: " [FROM-TO of SIZE]".
	if !bytes.HasPrefix(rest, []byte(" [")) {
		return false
	}
	n := 2 + digits.run(rest[2:], 20)
	if n == 2 || n == len(rest) || rest[n] != '-' {
		return false
	}
	n++
	n += digits.run(rest[n:], 20)
	return bytes.HasPrefix(rest[n:], []byte(" of "))
}

// jumbled says that b is no word or identifier: digits and both cases change in it as chance has them.
func jumbled(b []byte) bool {
	kind := func(c byte) int {
		switch {
		case digits[c]:
			return 1
		case c >= 'a' && c <= 'z':
			return 2
		}
		return 3
	}
	changes := 0
	for i := 1; i < len(b); i++ {
		if kind(b[i]) != kind(b[i-1]) {
			changes++
		}
	}
	return changes*4 >= len(b)
}
