package linesearch

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LettersNote is the note of an answer if Totals.Letters is set.
const LettersNote = `\b, \w and \d know ASCII letters and digits alone, and this text has others: write ` +
	`[\p{L}\p{N}_] for \w, and (?:^|[^\p{L}\p{N}_]) for \b`

// UsesASCII reports whether a pattern has a class that RE2 defines for ASCII alone: \b, \w or \d, or the opposite of
// one.
func UsesASCII(expr string) bool {
	for {
		_, after, found := strings.Cut(expr, `\`)
		switch {
		case !found || after == "":
			return false
		case strings.Contains("bBwWdD", after[:1]):
			return true
		case after[0] == 'Q':
			_, after, _ = strings.Cut(after, `\E`)
			expr = after
		default:
			expr = after[1:]
		}
	}
}

// HasLetters reports whether b has a letter or digit that is not ASCII.
func HasLetters(b []byte) bool {
	for i := 0; i < len(b); {
		for i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:])&0x8080808080808080 == 0 {
			i += 8
		}
		for i < len(b) && b[i] < utf8.RuneSelf {
			i++
		}
		r, size := utf8.DecodeRune(b[i:])
		if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r)) {
			return true
		}
		i += max(size, 1)
	}
	return false
}

// see sets Totals.Letters if the pattern has classes for ASCII and b has other letters.
func (m *Matcher) see(b []byte, t *Totals) {
	if m.ascii && !t.Letters {
		t.Letters = HasLetters(b)
	}
}
