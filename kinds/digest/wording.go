package digest

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of lines, in runes except for HeadBytes. A line of 120 runes costs about 40 tokens; a receipt holds 160 to
// 600 tokens.
const (
	MaxLine    = 2000          // maximum length of any line
	LineRunes  = 140           // a line quoted from the text
	NameRunes  = 64            // a file name in a list
	PieceRunes = 240           // a truncated value, quoted to show where JSON breaks off
	HeadBytes  = 4 * LineRunes // bytes kept of a line that may be quoted or compared
)

// OneLine escapes newlines in s and truncates it to MaxLine runes.
func OneLine(s string) string {
	if strings.ContainsAny(s, "\n\r") {
		s = strings.NewReplacer("\r\n", `\n`, "\n", `\n`, "\r", `\r`).Replace(s)
	}
	if len(s) > MaxLine && utf8.RuneCountInString(s) > MaxLine {
		return content.Clip(s, MaxLine)
	}
	return s
}

// Number formats a count as receipts do: plain digits.
func Number(n int64) string { return strconv.FormatInt(n, 10) }

// Span formats a range: "7" or "7-12".
func Span(from, to int64) string {
	if from == to {
		return Number(from)
	}
	return Number(from) + "-" + Number(to)
}

// CutText returns the first max runes of s.
func CutText(s string, max int) string {
	n := 0
	for i := range s {
		if n == max {
			return s[:i]
		}
		n++
	}
	return s
}

// IsWord is true for bytes of words: letters, digits, _ and all bytes beyond ASCII.
var IsWord = func() (t [256]bool) {
	for c := range 256 {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
	}
	return t
}()
