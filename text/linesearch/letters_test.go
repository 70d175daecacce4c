package linesearch

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestLetters finds where a class for ASCII meets other letters, in short and long texts, on one line and over several.
func TestLetters(t *testing.T) {
	long := strings.Repeat("plain words and 12 more\n", 100_000)
	for _, c := range []struct {
		expr, text string
		want       bool
	}{
		{`\bétude\b`, "une étude ici\n", true}, {`\w+`, long + "Übung\n", true}, {`\w+`, long, false},
		{`\d`, "x ٣\n", true}, {`\D`, "– “quoted” –\n", false},
		{`étude`, "une étude\n", false}, {`\\b`, "une étude\n", false},
		{`\Q\b\E`, "une étude\n", false}, {`\Q\b\E\b`, "une étude\n", true}, {`[\w-]+`, "привет\n", true},
		{`\S\s`, "é \n", false},
		{`(?s)\bé.*\w`, "x\né\n", true}, {`\w`, "é" + strings.Repeat("x", 3<<20), true}, {`\w`, "\xff\xfe", false},
	} {
		for _, multiline := range []bool{false, true} {
			m, err := Compile(Pattern{Expr: c.expr, Multiline: multiline})
			expect.Must(t, err)
			totals, err := m.Scan(t.Context(), strings.NewReader(c.text), Options{}, nil)
			if err != nil || totals.Letters != c.want {
				t.Errorf("%s in %.20q (multiline %t): %t, %v", c.expr, c.text, multiline, totals.Letters, err)
			}
		}
		m, err := Compile(Pattern{Expr: c.expr, Literal: true})
		expect.Must(t, err)
		if totals, err := m.Scan(t.Context(), strings.NewReader(c.text), Options{}, nil); totals.Letters || err != nil {
			t.Errorf("%s as it is written: %t, %v", c.expr, totals.Letters, err)
		}
	}
}
