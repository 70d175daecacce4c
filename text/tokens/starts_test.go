package tokens

import (
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"pgregory.net/rapid"
)

// sameStarts checks, from every start of a piece, that pieces begin where nextO200k says.
func sameStarts(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte,
) (told int) {
	t.Helper()
	for at := 0; len(text)-at >= block; {
		starts := startsO200k(text[at:])
		if starts&1 == 0 {
			t.Fatalf("%q begins with no piece", text[at:])
		}
		for end := 0; starts != 0; {
			var want uint64
			if end < block {
				want = 1 << end
			}
			if least := starts & -starts; least != want {
				t.Fatalf("%q: a piece begins at bit %b, by itself at %d", text[at:at+block], least, end)
			}
			starts &= starts - 1
			told++
			end += nextO200k(text[at+end:])
		}
		at += nextO200k(text[at:])
	}
	return told
}

func TestStartsAreThoseOfPieces(t *testing.T) {
	promise.WithoutRace(t)
	for name, text := range map[string][]byte{"JSON": corpus.JSON1MB(), "novel": corpus.WarAndPeace()[:1<<20], "diff": corpus.WarAndPeaceDiff(), "log": corpus.PanicLog(), "CJK": corpus.CJK()} {
		text = text[:min(len(text), 1<<20)]
		if told := sameStarts(t, text); told < 1000 && name != "CJK" {
			t.Errorf("%s: %d starts", name, told)
		}
	}
	part := rapid.OneOf(
		rapid.StringMatching(
			`([a-z]{1,9}|[A-Z]{1,9}|[0-9]{1,9}| {1,5}|[\t\v\f]{1,3}|[\r\n]{1,3}|[!-/:-@\[-`+"`"+`\x00-\x08]{1,4})`,
		),
		rapid.SampledFrom(
			[]string{
				"'s", "'LL", "'lL", "'re", "'x", "''", "\n/", "/", ";\n", "\n  \n", "\n\t", " .", "é", "Éa", "ж", "Ж", "“", "’s",
				"…", "—", "🙂", "ǅ", "²", "\u2028", "\u00a0", "中", "\u0301", "a'", "1",
			},
		),
	)
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for _, p := range rapid.SliceOfN(part, 20, 60).Draw(t, "parts") {
			text = append(text, p...)
		}
		sameStarts(t, slices.Concat(text, text))
	})
}

func FuzzStarts(f *testing.F) {
	f.Add([]byte("it's HTMLParser.foo(\"a\", 12345) ...\n\n  \n\t// x'LLy  .z /\r\n/ 1\n"), []byte("Ab'd"))
	f.Fuzz(func(t *testing.T, text, more []byte) {
		if len(text)+len(more) < 4096 {
			sameStarts(t, toValidUTF8(slices.Concat(text, more, text, more, text)))
		}
	})
}
