package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Clip shortens s to at most max runes: it replaces the middle by a mark with the number of removed characters ("…
// 1234 chars …"), and never splits a grapheme. If max is too small for that mark, the result is the beginning of s
// and "…". It is "" if max < 1.
func Clip(s string, max int) string {
	if len(s) <= max || utf8.RuneCountInString(s) <= max {
		return s
	}
	total := utf8.RuneCountInString(s)
	mark := utf8.RuneCountInString(omitted(total))
	if max < mark+8 {
		if max < 1 {
			return ""
		}
		return prefixWithin(s, max-1, utf8.RuneCountInString) + "…"
	}
	head := prefixWithin(s, (max-mark+1)/2, utf8.RuneCountInString)
	tail := suffixWithin(s[len(head):], (max-mark)/2, utf8.RuneCountInString)
	left := total - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return head + omitted(left) + tail
}

func omitted(chars int) string { return fmt.Sprintf("… %d chars …", chars) }

// ClipBytes shortens s to at most max bytes, with "…" in its middle, and never splits a grapheme. It is for text of
// the caller that an error message quotes.
func ClipBytes(s string, max int) string {
	const mark = "…"
	if len(s) <= max {
		return s
	}
	if max < len(mark) {
		return ""
	}
	room, size := max-len(mark), func(s string) int { return len(s) }
	head := prefixWithin(s, room-room/3, size)
	return head + mark + suffixWithin(s[len(head):], room/3, size)
}

// ClipEnd truncates s to at most max bytes, with "…" at its end, and never splits a UTF-8 sequence.
func ClipEnd(s string, max int) string {
	const mark = "…"
	if len(s) <= max {
		return s
	}
	if max < len(mark) {
		return ""
	}
	return s[:runeStart(s, max-len(mark))] + mark
}

// ClipBefore returns the beginning of s that has at most max bytes and does not split a UTF-8 sequence.
func ClipBefore(s string, max int) string { return s[:runeStart(s, max)] }

// ClipJSON returns arguments of at most max bytes without blanks, or their beginning as a JSON string.
func ClipJSON(args json.RawMessage, max int) json.RawMessage {
	if len(args) == 0 {
		return nil
	}
	var b bytes.Buffer
	if len(args) <= 4*max && json.Compact(&b, args) == nil && b.Len() <= max {
		return b.Bytes()
	}
	for n := max - 2; ; n /= 2 { // escaping control characters multiplies the length by six
		s, err := json.Marshal(ClipEnd(string(args[:min(len(args), n+1)]), n))
		if err == nil && len(s) <= max {
			return s
		}
	}
}

// prefixWithin returns the longest prefix of s that consists of whole graphemes and for which measure is at most room.
func prefixWithin(s string, room int, measure func(string) int) string {
	n := 0
	// Look at 4*room bytes at most, so that a single grapheme of a megabyte is not scanned to its end.
	g := graphemes.FromString(s[:runeStart(s, 4*room+utf8.UTFMax)])
	for g.Next() {
		room -= measure(g.Value())
		if room < 0 {
			break
		}
		n += len(g.Value())
	}
	return s[:n]
}

// suffixWithin returns the longest suffix of s that consists of whole graphemes and for which measure is at most room.
func suffixWithin(s string, room int, measure func(string) int) string {
	at := len(s)
	for left := room; at > 0; {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		left -= measure(s[at-size : at])
		if left < 0 {
			break
		}
		at -= size
	}
	// at is between two runes but may be inside a grapheme: go back to a sure grapheme boundary, then forward to the
	// first boundary at or after at.
	border := at
	for range 256 {
		if border == 0 || isBoundary(s, border) {
			break
		}
		_, size := utf8.DecodeLastRuneInString(s[:border])
		border -= size
	}
	g := graphemes.FromString(s[border:])
	for border < at && g.Next() {
		border += len(g.Value())
	}
	return s[border:]
}

// isBoundary reports whether a grapheme boundary is at i, regardless of the text more than one rune before i: no emoji
// sequence, flag or Indic conjunct can cross i.
func isBoundary(s string, i int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:i])
	after, m := utf8.DecodeRuneInString(s[i:])
	if before == 0x200d || unicode.IsMark(before) || before >= 0x1f1e6 && before <= 0x1f1ff ||
		after >= 0x1f3fb && after <= 0x1f3ff {
		return false
	}
	g := graphemes.FromString(s[i-n : i+m])
	return g.Next() && len(g.Value()) == n
}

// runeStart returns the last index up to i at which s can be cut without splitting a UTF-8 sequence.
func runeStart[T string | []byte](s T, i int) int {
	if i >= len(s) {
		return len(s)
	}
	for back := 0; back < utf8.UTFMax && i-back > 0; back++ {
		if utf8.RuneStart(s[i-back]) {
			return i - back
		}
	}
	return i
}
