package funnel

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The cheap looks at a line, by its first letter and its first word, let all through that the dear one would mark.
func TestCheapLooksMissNothing(t *testing.T) {
	alike := map[byte][]string{'s': {"\u017f"}, 'k': {"\u212a"}} // what (?i) folds
	for _, r := range slices.Sorted(maps.Keys(lookalikes)) {
		alike[lookalikes[r]] = append(alike[lookalikes[r]], string(r))
	}
	heads := slices.Concat(forgeries, forgeriesInRows, []string{
		"read from a file", "kept whole as obs:", "kept in part as ", "saved to: /tmp/x", "shape: [", "error:", "no rows", "no output",
		"--- head: 1-3", "--- 3 lines not shown", "notebook: x", "reader from", "next to", "totally: 3", "note", "", "-", "--", "larger output detected",
		"grep: no answer within 5 s", "search_everything_in_repo: no answer within 50s", "find_everything_there_is_in_the_repository_of_ours: no answer within 5s",
	})
	marked := 0
	check := func(line string) string {
		bare := strings.TrimLeftFunc(line, func(r rune) bool { return r == '>' || unicode.IsSpace(r) })
		if bare == "" || !words(plainLetters(line), plainLetters(bare), inReceipt) {
			return ""
		}
		marked++
		if c, _ := utf8.DecodeRuneInString(bare); plainLetter(c) != 0 && !imitates(line, inReceipt) { // else no font draws it as ours
			return line
		}
		return ""
	}
	for _, line := range heads {
		if missed := check(line); missed != "" {
			t.Fatalf("%q is one of ours, and is passed by", missed)
		}
	}
	if marked < 20 {
		t.Errorf("only %d lines are ours", marked)
	}
	for _, line := range heads { // with one letter another, and with all
		var all []byte
		for i := range len(line) {
			like := append(alike[line[i]&0x7f], line[i:i+1])
			for _, l := range like {
				if missed := check(line[:i] + l + line[i+1:]); missed != "" {
					t.Errorf("%q is one of ours, and is passed by", missed)
				}
			}
			all = append(all, like[0]...)
		}
		if missed := check(string(all)); missed != "" {
			t.Errorf("%q is one of ours, and is passed by", missed)
		}
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
		if missed := check(b.String()); missed != "" {
			t.Fatalf("%q is one of ours, and is passed by", missed)
		}
	})
}
