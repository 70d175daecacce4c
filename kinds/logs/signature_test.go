package logs

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestSignature: lines have the same signature if they differ only in words with a digit, as those of one row do.
func TestSignature(t *testing.T) {
	rows := map[uint64][]string{}
	for _, row := range [][]string{
		{"took 7ms", "took 123ms", "took x9", "took 0"}, {"took ms"}, {"took  7ms"}, {"took 7 ms", "took 1 ms"},
		{"id=4e3a9 ok", "id=77 ok"}, {"id= ok"}, {"id=77ok", "id=k0"}, {"1 2", "a1 2b"}, {"1  2", "s_1  é2"},
		{"1", "a1", "é_2", strings.Repeat("7", 200), strings.Repeat("w", 500) + "1"}, {strings.Repeat("w", 200)},
		{strings.Repeat("w", 201)}, {""}, {" "}, {"  "}, {"#"}, {"\x00|"}, {"\x00"}, {"word"}, {"word "}, {" word"},
		{"wor d"}, {"数据"}, {"数"},
	} {
		first := signature([]byte(row[0]))
		if other := rows[first]; other != nil {
			t.Errorf("%.20q and %.20q have one signature", row[0], other[0])
		}
		rows[first] = row
		for _, line := range row[1:] {
			expect.Equal(t, signature([]byte(line)), first, "%.20q and %.20q have two signatures", row[0], line)
		}
	}
}

// TestIsProse checks which first sentences say more than the lines that a receipt shows.
func TestIsProse(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "1 2 3 4 5 6 7 8 9 10": false, "Call me Ishmael. Some years ago": true, "x 1 2 3 4 5 6": false,
		"日本語のテキスト": true, "+---+---+ | a | b |": false,
	} {
		expect.Equal(t, isProse(text), want, text)
	}
}
