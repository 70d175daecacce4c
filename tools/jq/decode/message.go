package decode

import (
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Clip truncates text from outside to 200 bytes, for messages.
func Clip(s string) string { return content.ClipEnd(s, 200) }

// Middle cuts a JSON pointer in its middle, to one line of about 160 bytes.
func Middle(s string) string {
	const most = 160
	s = content.VisibleLine(s)
	if len(s) <= most {
		return s
	}
	return Clip(s[:most/2]) + "…" + Valid([]byte(s[len(s)-most/2:]))
}

// Valid returns the text with U+FFFD in place of each byte that is not UTF-8.
func Valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}
