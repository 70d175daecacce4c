package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestTerms(t *testing.T) {
	type row struct{ In, Want string }
	for _, c := range append(expect.Table[row](t, "testdata/terms.tsv"),
		row{"", ""},
	) {
		expect.Equal(t, strings.Join(Terms(c.In), " "), c.Want, c.In)
	}
	if got := Terms(strings.Repeat("é", 100)); len(got) != 1 || len(got[0]) > maxTerm {
		t.Errorf("a long word: %q", got)
	}
}

func FuzzEach(f *testing.F) {
	f.Add("HTTPServer 1,234 Führung 東京 \xff\xfe é")
	f.Fuzz(func(t *testing.T, text string) {
		terms := Terms(text)
		for _, term := range terms {
			if term == "" || strings.ContainsAny(term, " \n\"") || utf8.ValidString(text) && !utf8.ValidString(term) {
				t.Errorf("%q of %q", term, text)
			}
		}
		if again := Terms(strings.ToLower(strings.Join(terms, " "))); len(again) < len(terms)/2 {
			t.Errorf("%q, again %q", terms, again)
		}
		expect.EqualList(t, terms, Terms(text), "not the same twice")
	})
}
