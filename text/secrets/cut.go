package secrets

import (
	"bytes"
	"regexp"
	"slices"
	"sync"
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
	return slices.ContainsFunc(cutSigns, func(sign []byte) bool { return bytes.HasPrefix(rest, sign) }) ||
		bytes.HasPrefix(rest, []byte(" [")) && excerptRange().Match(rest)
}

// excerptRange matches " [FROM-TO of SIZE]", which follows an excerpt of a value.
var excerptRange = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ \[\d{1,20}-\d{0,20} of `) })
