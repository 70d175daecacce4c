package facts

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestCovered adds weights whose sum depends on their order: it is the same each time, and for each order of the words.
func TestCovered(t *testing.T) {
	q := Query{Terms: map[string]float64{"alpha": 1.1, "beta": 2.3, "gamma": 0.7, "delta": 3.3, "epsilon": 1.7}}
	for name, texts := range map[string][]string{
		"none": {"", "zeta"},
		"some": {"alpha beta gamma delta", "delta gamma beta alpha", "beta alpha beta delta gamma"},
		"all":  {"alpha beta gamma delta epsilon", "epsilon delta gamma beta alpha"},
	} {
		first := q.Covered(texts[0])
		for range 100 {
			for _, text := range texts {
				expect.MustEqual(t, q.Covered(text), first, "%s: %q covers, %q", name, texts[0], text)
			}
		}
	}
}

// TestWants reads "due" as a date, but not that of a total.
func TestWants(t *testing.T) {
	for question, want := range map[string]Asked{
		"total due on invoice 7": Amount, "when is the total due": Date, "how much is due in May": Amount,
		"is the rent due": Date, "who paid the total": Amount, "which files are due": Date, "who signed it": Name,
	} {
		expect.Equal(t, Wants(question), want, question)
	}
}

// TestMaskedBeforeCut masks a text before it is cut around the words.
func TestMaskedBeforeCut(t *testing.T) {
	q := Query{Terms: map[string]float64{"valv": 1}}
	text := strings.Repeat("é", 400) + " the valve is at key=SECRET " + strings.Repeat("ü", 400)
	got := Extract(q, Passage{File: "a", Line: 3, Text: text, Mask: func(s string) string {
		return strings.ReplaceAll(s, "SECRET", "[masked]")
	}})
	if len(got) != 1 || !strings.Contains(got[0].Text, "the valve is at key=[masked]") || len(got[0].Text) > maxText ||
		!utf8.ValidString(got[0].Text) || got[0].From != 3 {
		t.Errorf("%+v", got)
	}
}

func TestAroundFact(t *testing.T) {
	const prose = "Title\n\nThe first line\ngoes on here,\nhere too,\nand ends here.\nAnother sentence.\n\nEnd token=abc"
	for _, tt := range []struct {
		from, to int // lines of the fact, from 10
		table    bool
		want     string // "from-to text"
	}{
		{12, 12, false, "12-15 The first line/goes on here,/here too,/and ends here."},
		{14, 14, false, "13-16 goes on here,/here too,/and ends here./Another sentence."},
		{16, 16, false, "15-16 and ends here./Another sentence."},
		{10, 10, false, ""}, // stands alone
		{12, 15, false, ""}, // long enough
		{14, 14, true, ""},
		{99, 99, false, ""},
	} {
		p := Passage{Line: 10, Text: prose, Table: tt.table, Mask: func(s string) string {
			return strings.ReplaceAll(s, "abc", "***")
		}}
		got := ""
		if a := p.AroundFact(Fact{From: tt.from, To: tt.to}); a != nil {
			got = fmt.Sprintf("%d-%d %s", a.From, a.To, strings.ReplaceAll(a.Text, "\n", "/"))
		}
		expect.Equal(t, got, tt.want, tt.from, tt.to)
	}
	wide := Passage{Line: 1, Text: "a\nb\n" + strings.Repeat("c ", 60) + "\nd"}
	expect.Equal(t, wide.AroundFact(Fact{From: 2, To: 2}).Text, "a\nb", "no line is cut")
	expect.Equal(t, wide.AroundFact(Fact{From: 3, To: 3}), nil, "a long line has its own cut")
	secret := Passage{Line: 1, Text: "a\ntoken=abc\nb", Mask: func(s string) string {
		return strings.ReplaceAll(s, "abc", "***")
	}}
	expect.Equal(t, secret.AroundFact(Fact{From: 1, To: 1}).Text, "a\ntoken=***\nb")
	secret.Mask = func(string) string { return "[masked: this text could not be searched for secrets]" }
	expect.Equal(t, secret.AroundFact(Fact{From: 1, To: 1}), nil, "its lines are not known")
}
