package fs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// hostile are texts whose chars are hard to tell apart, cheap here and dear there, with and without line ends.
func hostile() *rapid.Generator[string] {
	repeated := func(s string, most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string { return strings.Repeat(s, rapid.IntRange(1, most).Draw(t, "times")) })
	}
	part := rapid.OneOf(
		repeated("some words, ", 40), repeated("a", 500), repeated("世", 200), repeated("\n", 4), repeated("\r\n", 4), repeated("\r", 3),
		repeated("e\u0301", 60),                // a letter and its accent
		repeated("\u0301", 80),                 // accents on accents
		repeated("👨\u200d👩\u200d👧", 20),        // one family a grapheme
		repeated("👍🏽", 20), repeated("🇬🇧", 21), // skin tones; flags are pairs
		repeated("\u202e\x1b[0m", 20),                   // shown as escapes
		repeated("\xf0\x9f\x98\x80\x80\x80\x80\x80", 6), // a char, then bytes that belong to none
		repeated("\xe4\xb8", 20), repeated("\xff", 60),  // chars that break off
		repeated("showing 0-9 of 10; next: slice {\n", 3),
	)
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 1, 12).Draw(t, "parts"), "") })
}

// failing is what tests and properties have in common.
type failing interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// onPages follows the calls that pages name and puts the source together again: what a page takes of it begins where
// the last one ended, its rows are the text up to the next line ends, and the last page reaches the end.
func onPages(t failing, src source.Set, source, unit, text string, room func() int) {
	at := map[string]func(n int64) int{
		"bytes": func(n int64) int { return int(n) },
		"chars": func(n int64) int { return len(cutRunes(text, int(n))) },
	}[unit]
	pos := 0
	for given := "0-"; ; {
		s := &sheet{room: room()}
		args, err := json.Marshal(map[string]string{"source": source, unit: given})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.run(src, string(args)); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if s.clipped {
			t.Fatalf("%s: a row is clipped", args)
		}
		if len(s.rows) == 0 {
			t.Fatalf("%s: no rows", args)
		}
		for i, row := range s.rows {
			if !strings.HasPrefix(text[pos:], row) {
				t.Fatalf("%s: at byte %d stands %.60q, row %d is %.60q", args, pos, text[pos:], i, row)
			}
			pos += len(row)
		}
		if s.next == nil {
			break
		}
		a := s.next.Args.(sliceArgs)
		given = a.Bytes + a.Chars
		from, err := strconv.ParseInt(strings.TrimSuffix(given, "-"), 10, 64)
		if err != nil {
			t.Fatalf("next %+v", a)
		}
		if at(from) != pos {
			t.Fatalf("%s: shown up to byte %d, and the next page begins at %d", args, pos, at(from))
		}
	}
	if pos != len(text) {
		t.Fatalf("the last page ends at byte %d of %d", pos, len(text))
	}
}

// cutRunes is the first n chars of s; an invalid byte is a char.
func cutRunes(s string, n int) string {
	size := 0
	for _, c := range charBytes(s)[:n] {
		size += c
	}
	return s[:size]
}

// Nothing stands between two pages, whatever the text is and however little a page holds.
func TestSlicePagesLoseNothing(t *testing.T) {
	dir := t.TempDir()
	src := toolstest.Roots(t, dir)
	for _, unit := range []string{"bytes", "chars"} {
		t.Run(unit, func(t *testing.T) {
			n := 0
			rapid.Check(t, func(t *rapid.T) {
				raw := hostile().Draw(t, "text")
				if rapid.Bool().Draw(t, "two bytes a char") {
					raw = utf16le(strings.ToValidUTF8(raw, "?"))
				}
				n++
				name := fmt.Sprintf("%s%d.txt", unit, n)
				if err := os.WriteFile(filepath.Join(dir, name), []byte(raw), 0o600); err != nil {
					t.Fatal(err)
				}
				text, ok := decoded(t, src, name)
				if !ok {
					return
				}
				onPages(t, src, name, unit, text, func() int { return rapid.IntRange(1, 3000).Draw(t, "room") })
			})
		})
	}
}

// Lines longer than what is read at once, and pages larger than that.
func TestSlicePagesLoseNothingOfLongLines(t *testing.T) {
	promise.WithoutRace(t)
	dir := t.TempDir()
	src := toolstest.Roots(t, dir)
	for i, raw := range []string{
		strings.Repeat("x", window-1) + "\r\n" + strings.Repeat("y", window) + "\nend",
		strings.Repeat("x", window-2) + "\r\r\r\r\n\nend\n",
		strings.Repeat("世界", window) + "\n",
		"ab" + strings.Repeat("\u0301", window),
		strings.Repeat("line\r\n", window/3),
		utf16le(strings.Repeat("ab\u202e\n", window)),
	} {
		name := fmt.Sprintf("%d.txt", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		text, ok := decoded(t, src, name)
		if !ok {
			t.Fatalf("%d is taken for binary", i)
		}
		for _, unit := range []string{"bytes", "chars"} {
			for _, room := range []int{window / 4, window - 1, window + 1, 3 * window} {
				onPages(t, src, name, unit, text, func() int { return room })
			}
		}
	}
}

// decoded is a file's text; false where it has none.
func decoded(t failing, src source.Set, name string) (string, bool) {
	s, err := src.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if s.Encoding == content.NoText {
		return "", false
	}
	r, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), true
}
