package funnel

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// minWidth is the least width a line is clipped to: 12 chars on each side of the count.
const minWidth = 44

// text makes a line of a string that is at hand in full.
func text(s string) line { return line{left: []byte(s), chars: int64(utf8.RuneCountInString(s))} }

// shown is the line as it is shown, in at most width chars: hidden characters
// visible, and where it is longer, cut in its middle with the count of the
// chars left out ("… 98304 chars …"), never inside a grapheme.
func (l line) shown(width int, json bool) string {
	width = max(width, minWidth)
	see := func(s string) string { return visibleLine(s, json) }
	if l.many {
		see = func(s string) string { return visible(s, json) }
	}
	if len(l.right) == 0 {
		s := see(string(l.left))
		if len(s) <= width || utf8.RuneCountInString(s) <= width {
			return s
		}
	}
	// The count is at most as long as that of all chars.
	room := width - utf8.RuneCountInString(leftOut(l.chars))
	left, right := string(l.left), string(l.right)
	if len(l.right) == 0 {
		right = left
	}
	head, headChars := fromLeft(whole(left, len(l.right) > 0), room*3/5, see)
	tail, tailChars := fromRight(right, len(l.right) > 0, room-room*3/5, see)
	return head + leftOut(l.chars-headChars-tailChars) + tail
}

func leftOut(chars int64) string { return fmt.Sprintf("… %d chars …", chars) }

// whole drops the beginning of a char that stands at the end of a part that was cut off.
func whole(s string, cut bool) string {
	if cut {
		s = s[:len(s)-partial([]byte(s))]
	}
	return s
}

// partial is how many bytes at the end of b are the beginning of a char.
func partial(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// between is the last place at or before n to cut b at: between two graphemes, or between two chars where
// n stands in the first grapheme.
func between(b []byte, n int) int {
	if n >= len(b) {
		return len(b)
	}
	at := 0
	for g := graphemes.FromBytes(b); g.Next() && at+len(g.Value()) <= n; {
		at += len(g.Value())
	}
	if at == 0 {
		at = n
	}
	// A char begins at most three bytes before; bytes that are no UTF-8 are chars of their own.
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

// fromLeft takes graphemes while they fit into room chars as shown, and says how many chars of s they are.
func fromLeft(s string, room int, see func(string) string) (shown string, chars int64) {
	if content.Plain(s) {
		s = s[:min(max(room, 0), len(s))]
		return s, int64(len(s))
	}
	return graphemesLeft(s, room, see)
}

func graphemesLeft(s string, room int, see func(string) string) (shown string, chars int64) {
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

// fromRight is fromLeft from the end. Where s was cut at its beginning its first grapheme may be a piece: it is not shown.
func fromRight(s string, cut bool, room int, see func(string) string) (shown string, chars int64) {
	if cut {
		for i := 0; i < utf8.UTFMax-1 && len(s) > 0 && !utf8.RuneStart(s[0]); i++ {
			s = s[1:]
		}
	}
	if content.Plain(s) {
		if cut && s != "" {
			s = s[1:]
		}
		s = s[len(s)-min(max(room, 0), len(s)):]
		return s, int64(len(s))
	}
	return graphemesRight(s, cut, room, see)
}

func graphemesRight(s string, cut bool, room int, see func(string) string) (shown string, chars int64) {
	// Room chars are at most that many graphemes; a grapheme begins at each place collected.
	var parts []string
	first := true
	for g := graphemes.FromString(s); g.Next(); first = false {
		if !first || !cut {
			parts = append(parts, g.Value())
		}
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

// visibleLine is content.Visible for what must stay one line.
func visibleLine(s string, json bool) string {
	s = visible(s, json)
	if strings.ContainsAny(s, "\n") {
		newline := `\x0a`
		if json {
			newline = `\n`
		}
		s = strings.ReplaceAll(s, "\n", newline)
	}
	return s
}
