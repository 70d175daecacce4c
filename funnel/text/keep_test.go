package text

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

var leftOut = regexp.MustCompile(`… (\d+) chars …`)

// TestKeeper: what is cut hides no range that has room.
func TestKeeper(t *testing.T) {
	line := "begin " + strings.Repeat(
		"a",
		100,
	) + " id=17 " + strings.Repeat(
		"b",
		100,
	) + " user=zoë " + strings.Repeat(
		"c",
		100,
	) + " end"
	at := func(s string) Range { i := strings.Index(line, s); return Range{i, i + len(s), 1} }
	id, user, begin := at("id=17"), at("user=zoë"), at("begin")
	long := Line{Left: []byte(line), Right: []byte(strings.Repeat("c", 50) + " end"), Chars: 9000}
	for _, c := range []struct {
		line  Line
		width int
		keep  []Range
		want  string
	}{
		{LineOf(line), 70, nil, "begin aaaaaaaaaaaaaaaaaaaaaaaaaaaa… 270 chars …ccccccccccccccccccc end"},
		{LineOf(line), 70, []Range{begin}, "begin aaaaaaaaaaaaaaaaaaaaaaaaaaaa… 270 chars …ccccccccccccccccccc end"},
		{LineOf(line), 70, []Range{id}, "begin aaaaaaaaaaaaaaaaaa… 83 chars …id=17… 199 chars …cccccccccccc end"},
		{LineOf(line), 44, []Range{id}, "begin aa… 99 chars …id=17… 209 chars …cc end"},
		{LineOf(line), 70, []Range{user, id}, "begin aaaaaa… 95 chars …id=17… 102 chars …user=zoë… 97 chars …cccc end"},
		{LineOf(line), 44, []Range{user, id}, "begin … 208 chars …user=zoë… 101 chars … end"},
		{LineOf(line), 400, []Range{user, id}, line},
		{long, 70, []Range{id}, "begin aaaaaaaaaaaaaaaaa… 84 chars …id=17… 8872 chars …cccccccccccc end"},
		{long, 70, []Range{{len(line) - 1, len(line) + 9, 1}}, "begin aaaaaaaaaaaaaaaaaaaaaaaaaaa… 8944 chars …ccccccccccccccccccc end"},
	} {
		got := NewKeeper(c.line, false, c.keep).Clip(c.width)
		if n := utf8.RuneCountInString(got); got != c.want || n > c.width {
			t.Errorf("%d, %v: %d chars\n%s\n%s", c.width, c.keep, n, got, c.want)
		}
	}
}

// TestKeeperCountsAllChars: a line stays within its width, and what it shows and what it counts as left out is the
// line.
func TestKeeperCountsAllChars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := []byte(rapid.StringMatching(`([a-z ]|é|数|"x":1,|e\x{301}){0,400}`).Draw(t, "line"))
		l := Line{Left: line, Chars: int64(utf8.RuneCount(line))}
		if cut := rapid.IntRange(0, len(line)).Draw(t, "cut"); cut > 0 && rapid.Bool().Draw(t, "long") {
			cut = CutBefore(line, cut)
			hidden := rapid.Int64Range(0, 1e9).Draw(t, "hidden")
			if rest := line[cut:]; len(rest) > 0 && utf8.RuneStart(rest[0]) {
				l = Line{Left: line[:cut], Right: rest, Chars: l.Chars + hidden}
			}
		}
		var keep []Range
		for range rapid.IntRange(0, 9).Draw(t, "ranges") {
			from := CutBefore(l.Left, rapid.IntRange(1, 900).Draw(t, "from"))
			keep = append(keep, Range{from, from + CutBefore(l.Left[from:], rapid.IntRange(1, 90).Draw(t, "size")), 1})
		}
		width := rapid.IntRange(0, 300).Draw(t, "width")
		got := NewKeeper(l, false, keep).Clip(width)
		if n := utf8.RuneCountInString(got); n > max(width, MinWidth) {
			t.Fatalf("%d chars at a width of %d: %s", n, width, got)
		}
		shown := int64(utf8.RuneCountInString(leftOut.ReplaceAllString(got, "")))
		for _, m := range leftOut.FindAllStringSubmatch(got, -1) {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			shown += n
		}
		expect.MustEqual(t, shown, l.Chars, "chars, %q", got)
	})
}
