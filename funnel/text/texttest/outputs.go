package texttest

import (
	"strings"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Outputs draws outputs with what is awkward for a counter of lines: no final newline, empty lines, CRLF, long lines,
// bad UTF-8.
func Outputs() *rapid.Generator[[]byte] {
	piece := rapid.OneOf(
		rapid.SampledFrom(
			[]string{"\n", "\r\n", "\n\n", "\r", "", "x", "äöü", "数据", "🙂\u200d🙂", "\xff", "\xe6\x96", "\u202e", "\t"},
		),
		rapid.StringN(0, 40, -1),
		rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(
				rapid.SampledFrom([]string{"a", "é", "語", "ab cd "}).Draw(t, "unit"), rapid.IntRange(1, 3000).Draw(t, "times"),
			)
		}),
	)
	return rapid.Custom(func(t *rapid.T) []byte {
		return []byte(strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), ""))
	})
}

// Counted is what splitting a text at its newlines counts: lines, their characters, and those of the longest one.
type Counted struct {
	Lines, Chars, Longest int64
	Split                 []string // the lines, without CRLF
}

// Count counts by splitting, as the doc comment of the edges of package capture says.
func Count(b []byte) Counted {
	n := Counted{Chars: int64(utf8.RuneCount(b))}
	if len(b) == 0 {
		return n
	}
	n.Split = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	n.Lines = int64(len(n.Split))
	for i, l := range n.Split {
		n.Longest = max(n.Longest, int64(utf8.RuneCountInString(l)))
		n.Split[i] = strings.TrimSuffix(l, "\r")
	}
	return n
}
