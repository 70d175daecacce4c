package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"Revenue targets: Project":          "revenu target project",
		"HTTPServer readAll read_all":       "http server read all read all",
		"newHTTP2Server XMLHttpRequest":     "new http2 server xml http request",
		"$450,000 450000 1.234.567":         "450000 450000 1234567",
		"3.14 v1.2.3 12,34":                 "3 14 v1 2 3 12 34",
		"7.874 38.101-1 12.500€ 7.874g":     "7874 38101 1 12500 7874 g",
		"1 234,56 1.234,56 1,234.567":       "1234 1 234 56 1234 56 1234 567",
		"450 000 4’500 1\u202f234\u00a0567": "450000 450 000 4500 1234 1 234 567",
		"2026 000, 1,2345 12 345a 1,23":     "2026 000 1 2345 12 345a 1 23",
		"+49 30 901820":                     "49 30 901820",
		"Führung naïve Straße Ørsted":       "fuhrung naiv strass orst",
		"東京で会議":                             "東 京 で 会 議",
		"ວຽງຈັນ ရန်ကုန် ភ្នំ": "ວ ຽ ງ ຈ ນ ရ န က န ភ ន",
		"don't a\xffb":         "don t a b",
		"QUARTERLY 2026-03-01": "quarter 2026 03 01",
	} {
		expect.Equal(t, strings.Join(Terms(text), " "), want, text)
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
