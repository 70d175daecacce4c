package secrets

import (
	"bytes"
)

// cutOff is the usual mark of truncation.
var cutOff = []byte("…")

// cutSigns are other marks of truncation: in error messages of jq, and after an excerpt of a long line in search
// results.
var cutSigns = [][]byte{[]byte("..."), []byte(" ..."), []byte(`","column":`), []byte(`\",\"column\":`)}

const (
	minClipped = 8       // minimum number of bytes after the keyword of a truncated token
	longLine   = 2 << 10 // length in bytes from which a line or string is assumed to be a truncated excerpt
)

// cutAt reports whether the text was probably truncated at i, judging by the text around i.
func (s *scan) cutAt(i int) bool {
	rest := s.b[i:]
	if len(rest) == 0 && !s.final {
		return false
	}
	if i >= longLine { // the end of a long line or of a long quoted text counts as truncation
		before := s.b[i-longLine : i]
		if (len(rest) == 0 || rest[0] == '\n') && bytes.LastIndexByte(before, '\n') < 0 || len(rest) > 0 && rest[0] == '"' &&
			bytes.LastIndexByte(before, '"') < 0 {
			return true
		}
	}
	for _, sign := range cutSigns {
		if bytes.HasPrefix(rest, sign) {
			return true
		}
	}
	// An excerpt of a value ends with " [FROM-TO of SIZE]".
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
