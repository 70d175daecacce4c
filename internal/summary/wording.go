package summary

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// Sizes of lines, in runes. A line of about 120 costs some 40 tokens, and a receipt holds 160 to 600.
const (
	maxLine    = 2000 // no line is longer
	lineRunes  = 140  // a line quoted from the text
	nameRunes  = 64   // a file name in a list
	pieceRunes = 240  // a cut-off piece, which is wanted as it is
)

// oneLine makes sure of what Summary promises of every line.
func oneLine(s string) string {
	if strings.ContainsAny(s, "\n\r") {
		s = strings.NewReplacer("\r\n", `\n`, "\n", `\n`, "\r", `\r`).Replace(s)
	}
	if len(s) > maxLine && utf8.RuneCountInString(s) > maxLine {
		s = content.Clip(s, maxLine)
		if r := []rune(s); len(r) > maxLine {
			s = string(r[:maxLine])
		}
	}
	return s
}

// number writes counts as the receipt does: plain digits.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// counted is "1 row", "2 rows".
func counted(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + more
}

// span is "7" or "7-12".
func span(from, to int64) string {
	if from == to {
		return number(from)
	}
	return number(from) + "-" + number(to)
}
