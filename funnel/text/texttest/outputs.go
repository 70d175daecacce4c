package texttest

import (
	"strings"

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
