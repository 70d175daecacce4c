package source

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Decoded collects which texts were decoded, for one note on all of them.
type Decoded struct {
	n     int64
	first []string
}

// Add counts a text that is shown under name, if it is stored in another encoding than UTF-8.
func (d *Decoded) Add(name string, stored content.Encoding) {
	if !isEncoded(stored) {
		return
	}
	d.n++
	if len(d.first) < 3 {
		d.first = append(d.first, content.ClipBytes(content.VisibleLine(name), 100)+" ("+string(stored)+")")
	}
}

// isEncoded reports whether an answer must say how a text is stored.
func isEncoded(stored content.Encoding) bool {
	switch stored {
	case "", content.UTF8, content.UTF8BOM, content.NoText:
		return false
	}
	return true
}

// NoteAll returns the note on all of several texts, with the names of up to three; "" if none was decoded.
func (d *Decoded) NoteAll() string {
	if d.n == 1 {
		return "decoded: " + d.first[0]
	}
	return d.names("files are decoded")
}

// NoteDoubtful returns the note on texts that were searched and may have words that were not found; "" if there is
// none.
func (d *Decoded) NoteDoubtful() string {
	if d.n == 1 {
		return "1 file is not UTF-8, and words of it may not be found: " + d.first[0]
	}
	return d.names("files are not UTF-8, and words of them may not be found")
}

func (d *Decoded) names(are string) string {
	switch {
	case d.n == 0:
		return ""
	case d.n > int64(len(d.first)):
		are += ", the first"
	}
	return fmt.Sprintf("%d %s: %s", d.n, are, strings.Join(d.first, ", "))
}

// Mixed is in place of the encoding of a text in UTF-8 with bytes that are not.
const Mixed content.Encoding = "some bytes"

// BeyondASCII reports whether a pattern may match characters beyond ASCII by other means than a dot.
func BeyondASCII(pattern string) bool {
	for i := range len(pattern) {
		if pattern[i] >= utf8.RuneSelf {
			return true
		}
	}
	return strings.Contains(pattern, `\p`) || strings.Contains(pattern, `\P`) || strings.Contains(pattern, `\x`)
}
