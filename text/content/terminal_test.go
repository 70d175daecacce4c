package content

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestTerminalLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext ": "plain\ttext ", "\x1b[31mred\x1b[0m": "red", "a\r": "a", "\x1b]0;title\aa": "a",
		"a\x1b[3Cb": "a   b", "a\x1b[Cb": "a b", "a\x1b[31m\x1b[4C\x1b[0mb": "a    b",
		"[  OK  ]\x1b[12Gup": "[  OK  ]   up",
		"long line here\rab": "abng line here", "long line here\rab\x1b[K": "ab", "50 %\r100 %": "100 %",
		"abc\r\x1b[2Kd":      "d",
		"abc\x1b[2D\x1b[1Kd": " dc", "a\b\bb": "b", "N\bNA\bA": "NA", "abcd\x1b[3Dx": "axcd", "abcd\x1b[0Gx": "xbcd",
		"a\tb\rx": "x       b", "äöü\r█": "█öü", "e\u0301a\rx": "xa", "\xff\xfe\rx": "x\xfe", "\u0301\ra": "a",
		"a\x1b[999999999Cb": "a" + strings.Repeat(" ", terminalWidth-1) + "b", "a\x1b[99999999999999999999Cb": "a b",
		strings.Repeat("x", 300) + "\x1b[9Cb": strings.Repeat("x", 300) + "b", "abc\x1b[9Dd": "dbc", "a\x1b\rb": "b",
		"\x1b[C": "", "\x1b[G": "", "a\r\x1b(Bb": "b", "a\r\x1b=b": "b",
	} {
		expect.Equal(t, string(TerminalLine([]byte(in))), want, "%q is shown", in)
	}
}

func FuzzTerminalLine(f *testing.F) {
	f.Add("a\x1b[3Cb\r\x1b[2K\tc\b\x1b[999D")
	f.Fuzz(func(t *testing.T, in string) {
		if got := TerminalLine([]byte(in)); len(got) > (len(in)+1)*terminalWidth {
			t.Errorf("%q grows to %d bytes", in, len(got))
		}
	})
}
