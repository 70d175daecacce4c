package content

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Clip cuts s in its middle to at most max runes, telling how many chars were left out ("… 1234 chars …"),
// never inside a grapheme. Where there is no room to tell it, only "…" stands there, and where not for that, nothing.
func Clip(s string, max int) string {
	if len(s) <= max || utf8.RuneCountInString(s) <= max {
		return s
	}
	total := utf8.RuneCountInString(s)
	mark := utf8.RuneCountInString(omitted(total))
	if max < mark+8 {
		return shorten(s, max)
	}
	head := upTo(s, (max-mark+1)/2, runes)
	tail := from(s[len(head):], (max-mark)/2, runes)
	left := total - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	return head + omitted(left) + tail
}

func omitted(chars int) string { return fmt.Sprintf("… %d chars …", chars) }

// shorten is for room too small to tell a number.
func shorten(s string, max int) string {
	if max < 1 {
		return ""
	}
	return upTo(s, max-1, runes) + "…"
}

// ClipBytes cuts what callers gave us, for error messages: at most max bytes, with "…" in its middle, never inside a grapheme.
func ClipBytes(s string, max int) string {
	const mark = "…"
	if len(s) <= max {
		return s
	}
	if max < len(mark) {
		return ""
	}
	room := max - len(mark)
	head := upTo(s, room-room/3, bytesOf)
	return head + mark + from(s[len(head):], room/3, bytesOf)
}

// measures of a grapheme
func runes(s string) int   { return utf8.RuneCountInString(s) }
func bytesOf(s string) int { return len(s) }

// ClipEnd cuts s at its end to at most max bytes, with "…" there, never inside a char.
func ClipEnd(s string, max int) string {
	const mark = "…"
	if len(s) <= max {
		return s
	}
	if max < len(mark) {
		return ""
	}
	return s[:runeStartIn(s, max-len(mark))] + mark
}

// upTo is the longest beginning of s of whole graphemes that measures at most room.
func upTo(s string, room int, measure func(string) int) string {
	n := 0
	// A grapheme is cut off at four times the room, so that one of a megabyte is not walked through.
	g := graphemes.FromString(s[:runeStartIn(s, 4*room+utf8.UTFMax)])
	for g.Next() {
		room -= measure(g.Value())
		if room < 0 {
			break
		}
		n += len(g.Value())
	}
	return s[:n]
}

// from is the longest end of s of whole graphemes that measures at most room.
func from(s string, room int, measure func(string) int) string {
	at := len(s)
	for left := room; at > 0; {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		left -= measure(s[at-size : at])
		if left < 0 {
			break
		}
		at -= size
	}
	// at is between two runes; the grapheme it may stand in began at a sure border before it.
	border := at
	for range 256 {
		if border == 0 || sure(s, border) {
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

// sure says whether graphemes break at i whatever stands further before: no emoji sequence, flag or Indic
// conjunct reaches over it.
func sure(s string, i int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:i])
	after, m := utf8.DecodeRuneInString(s[i:])
	if before == 0x200d || unicode.IsMark(before) || before >= 0x1f1e6 && before <= 0x1f1ff || after >= 0x1f3fb && after <= 0x1f3ff {
		return false
	}
	g := graphemes.FromString(s[i-n : i+m])
	return g.Next() && len(g.Value()) == n
}

// runeStartIn is the last index up to i at which no UTF-8 sequence of s is cut.
func runeStartIn(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	return runeStart([]byte(s[max(0, i-utf8.UTFMax):i+1]), min(i, utf8.UTFMax)) + max(0, i-utf8.UTFMax)
}
