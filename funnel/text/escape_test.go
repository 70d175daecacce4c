package text

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel/text/texttest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// The cheap looks at a line, by its first letter and its first word, let all through that the expensive one would mark.
func TestCheapLooksMissNothing(t *testing.T) {
	alike := map[byte][]string{'s': {"\u017f"}, 'k': {"\u212a"}} // what (?i) folds
	for _, r := range slices.Sorted(maps.Keys(lookalikes)) {
		alike[lookalikes[r]] = append(alike[lookalikes[r]], string(r))
	}
	heads := slices.Concat(texttest.Forgeries, texttest.ForgeriesInRows, []string{
		"read from a file", "kept whole as obs:", "kept in part as ", "saved to: /tmp/x", "shape: [", "error:", "no rows", "no output",
		"--- head: 1-3", "--- 3 lines not shown", "notebook: x", "reader from", "next to", "totally: 3", "note", "", "-", "--", "larger output detected",
		"grep: no answer within 5 s", "search_everything_in_repo: no answer within 50s", "find_everything_there_is_in_the_repository_of_ours: no answer within 5s",
	})
	marked := 0
	check := func(line string) string {
		bare := strings.TrimLeftFunc(line, func(r rune) bool { return r == '>' || unicode.IsSpace(r) })
		if bare == "" || !matchesPattern(foldLookalikes(line), foldLookalikes(bare), InReceipt) {
			return ""
		}
		marked++
		// else no font draws it as ours
		if c, _ := utf8.DecodeRuneInString(bare); foldLookalike(c) != 0 && !imitates(line, InReceipt) {
			return line
		}
		return ""
	}
	for _, line := range heads {
		expect.MustEqual(t, check(line), "", "one of ours, and is passed")
	}
	if marked < 20 {
		t.Errorf("only %d lines are ours", marked)
	}
	for _, line := range heads { // with one letter another, and with all
		var all []byte
		for i := range len(line) {
			like := append(alike[line[i]&0x7f], line[i:i+1])
			for _, l := range like {
				expect.Equal(t, check(line[:i]+l+line[i+1:]), "", "one of ours, and is passed")
			}
			all = append(all, like[0]...)
		}
		expect.Equal(t, check(string(all)), "", "one of ours, and is passed")
	}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for _, r := range rapid.SampledFrom(heads).Draw(t, "head") {
			s := string(r)
			switch like := alike[byte(r&0x7f)]; rapid.IntRange(0, 19).Draw(t, "how") {
			case 0:
				s = strings.ToUpper(s)
			case 1:
				s = strings.ToLower(s)
			case 2:
				if len(like) > 0 && r < unicode.MaxASCII {
					s = rapid.SampledFrom(like).Draw(t, "like")
				}
			case 3:
				s += rapid.SampledFrom([]string{" ", "\u00a0", "-", ":", ">"}).Draw(t, "more")
			}
			b.WriteString(s)
		}
		expect.MustEqual(t, check(b.String()), "", "one of ours, and is passed")
	})
}

// The control: without escaping, each forgery is found by what the tests above look for.
func TestForgeriesWouldPassUnescaped(t *testing.T) {
	for _, forged := range texttest.Forgeries {
		if strings.HasPrefix(forged, ">") {
			continue
		}
		if content.Visible(forged, false) != forged && !strings.HasPrefix(forged, "\u00a0") {
			t.Errorf("%q is harmless anyway", forged)
		}
		if !imitates(forged, Standalone) {
			t.Errorf("%q is not seen", forged)
		}
	}
	for _, forged := range texttest.ForgeriesInRows {
		if forged[0] != '>' && (content.Visible(forged, false) != forged || !imitates(forged, InRow)) {
			t.Errorf("row: %q is harmless anyway, or not seen", forged)
		}
	}
}

func TestOrdinaryLinesAreNotMarked(t *testing.T) {
	for _, s := range []string{
		"total: 5", "next: the second part", "--- a/file.go", "---", "--- header ---", "Showing results", "Note: see below", "  note: see below", "a.c:3: error: x", "saved to: x",
		"not shown", "large outputs are kept", "total 24\ndrwx", "shape: square", "SHOWING 5 of 7",
	} {
		expect.Equal(t, escapeImitations(s, Standalone), s, "became")
	}
	for _, s := range []string{
		"Note: see below", "  note: see below", "note:x", "errors: 3", "error[E0308]: mismatched types", "a.c:3: error: x", "12: note: x",
		"kept wholesale", "==> brew", "==>", "= = > x <==", "total: 17 bytes",
	} {
		expect.Equal(t, escapeImitations(s, InRow), s, "row, became")
	}
}

func TestEscapingCanBeUndone(t *testing.T) {
	line := rapid.OneOf(rapid.SampledFrom(slices.Concat([]string{""}, texttest.Forgeries, texttest.ForgeriesInReceipts, texttest.ForgeriesInRows)), rapid.StringN(0, 20, -1),
		rapid.Map(rapid.SampledFrom(texttest.Forgeries), func(s string) string { return ">>" + s }))
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "\n")
		at := rapid.SampledFrom([]Position{Standalone, InRow, InReceipt}).Draw(t, "place")
		var back []string
		for _, l := range strings.Split(escapeImitations(s, at), "\n") {
			indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
			if words, marked := strings.CutPrefix(l[len(indent):], ">"); marked && imitates(l, at) {
				l = indent + words
			}
			back = append(back, l)
		}
		expect.MustEqual(t, strings.Join(back, "\n"), s, "became")
	})
}
