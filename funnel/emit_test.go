package funnel

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// The cheap looks at a line, by its first letter and its first word, let all through that the dear one would mark.
func TestCheapLooksMissNothing(t *testing.T) {
	alike := map[byte][]string{'s': {"\u017f"}, 'k': {"\u212a"}} // what (?i) folds
	for _, r := range slices.Sorted(maps.Keys(lookalikes)) {
		alike[lookalikes[r]] = append(alike[lookalikes[r]], string(r))
	}
	heads := append(slices.Clone(forgeries), forgeriesInRows...)
	for _, more := range []string{
		"read from a file", "kept whole as obs:", "kept in part as ", "saved to: /tmp/x", "shape: [", "error:", "no rows", "no output", "grep: no answer within 5 s",
		"--- head: 1-3", "--- 3 lines not shown", "notebook: x", "reader from", "next to", "totally: 3", "note", "", "-", "--", "larger output detected",
	} {
		heads = append(heads, more)
	}
	marked := 0
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
		line := b.String()
		bare := strings.TrimLeftFunc(line, func(r rune) bool { return r == '>' || unicode.IsSpace(r) })
		if bare == "" || !begins(bare) {
			return // the first letter alone rules it out: so it was decided
		}
		if words(plainLetters(line), plainLetters(bare), inReceipt) {
			marked++
			if !opens(plainLetters(bare)) {
				t.Fatalf("%q is one of ours, and its first word is not known", line)
			}
		}
	})
	if marked == 0 {
		t.Error("no line was one of ours")
	}
}
