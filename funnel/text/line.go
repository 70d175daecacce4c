package text

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// MinWidth is the smallest width a line is clipped to: 12 chars on each side of the count.
const MinWidth = 44

// Line is one line of an output, without its line end. It holds only the two ends of a long line.
type Line struct {
	Left, Right []byte // Right is empty if Left is the whole line
	Chars       int64  // of the whole line
	MultiLine   bool   // the line is a row with line ends in it, which are not escaped
}

// LineOf returns the line of a string that is held in full.
func LineOf(s string) Line { return Line{Left: []byte(s), Chars: int64(utf8.RuneCountInString(s))} }

// Whole reports whether no part of the line was dropped.
func (l Line) Whole() bool { return len(l.Right) == 0 }

// Clip returns the line in at most width chars (at least [MinWidth]), with hidden characters shown. A longer line is
// cut in its middle, never inside a grapheme, and the cut says how many chars are left out ("… 98304 chars …").
func (l Line) Clip(width int, json bool) string {
	width = max(width, MinWidth)
	see := func(s string) string { return VisibleLine(s, json) }
	if l.MultiLine {
		see = func(s string) string { return Visible(s, json) }
	}
	if l.Whole() {
		s := see(string(l.Left))
		if len(s) <= width || utf8.RuneCountInString(s) <= width {
			return s
		}
	}
	// The count of the chars left out is at most as long as the count of all chars.
	room := width - utf8.RuneCountInString(LeftOut(l.Chars))
	left, right := string(l.Left), string(l.Right)
	if l.Whole() {
		right = left
	} else {
		left = left[:runes.Complete(l.Left)]
	}
	head, headChars := fittingPrefix(left, room*3/5, see)
	tail, tailChars := fittingSuffix(right, !l.Whole(), room-room*3/5, see)
	return head + LeftOut(l.Chars-headChars-tailChars) + tail
}

// LeftOut returns the marker for chars of a line that are left out.
func LeftOut(chars int64) string { return fmt.Sprintf("… %d chars …", chars) }

// CutBefore returns the last place at or before n where b may be cut: between two graphemes, or between two chars if
// n is inside the first grapheme.
func CutBefore(b []byte, n int) int {
	if n >= len(b) {
		return len(b)
	}
	at := 0
	for g := graphemes.FromBytes(b); g.Next() && at+len(g.Value()) <= n; {
		at += len(g.Value())
	}
	at = cmp.Or(at, n)
	// A char begins at most three bytes before; each byte that is not UTF-8 is a char of its own.
	for i := at - 1; i >= max(at-utf8.UTFMax+1, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if _, size := utf8.DecodeRune(b[i:]); i+size > at {
				return i
			}
			break
		}
	}
	return at
}

// fittingPrefix returns the leading graphemes that take at most room chars as see shows them, and how many chars of s
// they are.
func fittingPrefix(s string, room int, see func(string) string) (shown string, chars int64) {
	if content.Plain(s) {
		s = s[:min(max(room, 0), len(s))]
		return s, int64(len(s))
	}
	return graphemePrefix(s, room, see)
}

func graphemePrefix(s string, room int, see func(string) string) (shown string, chars int64) {
	var b strings.Builder
	for g := graphemes.FromString(s); g.Next(); {
		v := see(g.Value())
		if room -= utf8.RuneCountInString(v); room < 0 {
			break
		}
		b.WriteString(v)
		chars += int64(utf8.RuneCountInString(g.Value()))
	}
	return b.String(), chars
}

// fittingSuffix is fittingPrefix from the end. If s was cut at its beginning, its first grapheme may be incomplete and
// is not shown.
func fittingSuffix(s string, cut bool, room int, see func(string) string) (shown string, chars int64) {
	if cut {
		s = s[len(s)-len(runes.TrimStart([]byte(s))):]
	}
	if content.Plain(s) {
		if cut && s != "" {
			s = s[1:]
		}
		s = s[len(s)-min(max(room, 0), len(s)):]
		return s, int64(len(s))
	}
	return graphemeSuffix(s, cut, room, see)
}

func graphemeSuffix(s string, cut bool, room int, see func(string) string) (shown string, chars int64) {
	var parts []string
	for g := graphemes.FromString(s); g.Next(); {
		parts = append(parts, g.Value())
	}
	if cut && len(parts) > 0 {
		parts = parts[1:]
	}
	at := len(parts)
	for at > 0 {
		if room -= utf8.RuneCountInString(see(parts[at-1])); room < 0 {
			break
		}
		at--
	}
	var b strings.Builder
	for _, g := range parts[at:] {
		b.WriteString(see(g))
		chars += int64(utf8.RuneCountInString(g))
	}
	return b.String(), chars
}
