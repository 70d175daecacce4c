package answerer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// TestUngrounded checks claims against results. want has the claims that are reported, separated by "|".
func TestUngrounded(t *testing.T) {
	type row struct{ Answer, Question, Results, Want string }
	for _, c := range append(expect.Table[row](t, "testdata/ungrounded.tsv"),
		row{"", "", "", ""},
	) {
		got := ungrounded(c.Answer, c.Question, []string{c.Results})
		expect.Equal(t, strings.Join(got, "|"), c.Want, "%q: got %q", c.Answer, got)
	}
	expect.Equal(t, len(ungrounded(strings.Repeat("x_1 ", 3)+many(50), "", nil)), maxUngrounded+1, "claims")
}

func many(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf(" %d", 1000+7*i)
	}
	return text
}

// fact is a generated value of a document.
type fact struct {
	amount, day, month, number, share int
	name, file                        string
}

var (
	firms   = []string{"Acme", "Nordwind", "Contoso", "Lumière", "Iberia", "Hansa"}
	kinds   = []string{"invoice", "contract", "report", "offer"}
	english = strings.Fields("January February March April May June July August September October November December")
	german  = strings.Fields("Januar Februar März April Mai Juni Juli August September Oktober November Dezember")
	french  = strings.Fields("janvier février mars avril mai juin juillet août septembre octobre novembre décembre")
)

// generate returns facts and the result of a tool that lists them.
func generate(r *rand.Rand) (facts []fact, result string) {
	for range 2 + r.IntN(5) {
		f := fact{amount: 1000 + r.IntN(900_000), day: 1 + r.IntN(28), month: 1 + r.IntN(12), number: 1000 + r.IntN(9000),
			share: 13 + r.IntN(80), name: firms[r.IntN(len(firms))]}
		f.file = fmt.Sprintf("%s_%d.pdf", kinds[r.IntN(len(kinds))], f.number)
		facts = append(facts, f)
		result += fmt.Sprintf("From %s:\n  - Customer: %s GmbH\n  - Amount: EUR %s\n", f.file, f.name, grouped(f.amount, ","))
		result += fmt.Sprintf("  - Due: 2026-%02d-%02d\n  - Discount: %d%%\n", f.month, f.day, f.share)
	}
	return facts, result
}

func grouped(n int, separator string) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s%s%03d", grouped(n/1000, separator), separator, n%1000)
}

// spelled returns a number in one of the spellings that people use.
func spelled(r *rand.Rand, n int) string {
	return []string{fmt.Sprint(n), grouped(n, ","), grouped(n, "."), grouped(n, " "), grouped(n, "\u202f"),
		grouped(n, "'"),
		fmt.Sprintf("€%s", grouped(n, ",")), fmt.Sprintf("%s €", grouped(n, ".")), fmt.Sprintf("%s EUR", grouped(n, ",")),
		fmt.Sprintf("%s,00 €", grouped(n, ".")), fmt.Sprintf("%d.%03dK", n/1000, n%1000)}[r.IntN(11)]
}

func spelledDate(r *rand.Rand, d, m int) string {
	return []string{fmt.Sprintf("2026-%02d-%02d", m, d), fmt.Sprintf("%d %s 2026", d, english[m-1]),
		fmt.Sprintf("%s %d, 2026", english[m-1], d), fmt.Sprintf("%s %d, 2026", english[m-1][:3], d),
		fmt.Sprintf("%02d.%02d.2026", d, m), fmt.Sprintf("%d/%d/2026", m, d), fmt.Sprintf("%02d/%02d/2026", d, m),
		fmt.Sprintf("%d. %s 2026", d, german[m-1]), fmt.Sprintf("%d %s 2026", d, french[m-1]),
		fmt.Sprintf("%s %d", english[m-1], d), fmt.Sprintf("%s 2026", english[m-1])}[r.IntN(11)]
}

// answerOf returns a true answer; sums and counts are of all facts.
func answerOf(r *rand.Rand, facts []fact) string {
	f := facts[r.IntN(len(facts))]
	sum := 0
	for _, f := range facts {
		sum += f.amount
	}
	number := "zero one two three four five six seven"
	return []string{
		fmt.Sprintf("The amount of `%s` is %s, due on %s.", f.file, spelled(r, f.amount), spelledDate(r, f.day, f.month)),
		fmt.Sprintf("There are %d files. Together they amount to %s.", len(facts), spelled(r, sum)),
		fmt.Sprintf("I found %s documents; \"%s GmbH\" has to pay %s.", strings.Fields(number)[len(facts)], f.name,
			spelled(r, f.amount)),
		fmt.Sprintf("1. %s: %s\n2. The discount is %d %%, and it's due on %s.", f.file, spelled(r, f.amount), f.share,
			spelledDate(r, f.day, f.month)),
		fmt.Sprintf("Der Betrag von %s ist %s, fällig am %s, mit %d Prozent Rabatt.", f.file, spelled(r, f.amount),
			spelledDate(r, f.day, f.month), f.share),
		fmt.Sprintf("Document %d of %s GmbH (%s): %d%% discount.", f.number, f.name, spelledDate(r, f.day, f.month), f.share),
	}[r.IntN(6)]
}

// TestUngroundedTrue checks that at most 2 of 100 true answers are suspected.
func TestUngroundedTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	flagged := 0
	for range 100 {
		facts, result := generate(r)
		a := answerOf(r, facts)
		if got := ungrounded(a, "What is due?", []string{result}); len(got) > 0 {
			flagged++
			t.Logf("%q: %q", a, got)
		}
	}
	t.Logf("%d of 100 true answers flagged", flagged)
	if flagged > 2 {
		t.Errorf("%d of 100 true answers flagged", flagged)
	}
}

// TestUngroundedInvented checks that an invented number, date, share, count or code is found in each of 100
// answers.
func TestUngroundedInvented(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	found := 0
	for i := range 100 {
		facts, result := generate(r)
		f := facts[0]
		invented := []string{
			spelled(r, f.amount+1+r.IntN(9)), fmt.Sprintf("%d files", 40+r.IntN(50)*100), fmt.Sprintf("%d%%", 101+r.IntN(50)),
			fmt.Sprintf("%s_%d.pdf", kinds[r.IntN(4)], 10_000+r.IntN(999)), fmt.Sprintf("INV-%d", 10_000+r.IntN(999)),
			fmt.Sprintf("%d %s 2027", f.day, english[f.month-1]), fmt.Sprintf("2026-%02d-%02d", f.month, f.day+1+r.IntN(2)),
		}[i%7]
		if strings.Contains(result, invented) {
			invented = "2026-12-31"
		}
		a := answerOf(r, facts) + " It also says " + invented + " there."
		if got := ungrounded(a, "What is due?", []string{result}); len(got) == 0 {
			t.Errorf("%q was not found in %q with %s", invented, a, result)
		} else if len(got) > 1 {
			t.Logf("%q: %q", a, got)
			found++
		} else {
			found++
		}
	}
	t.Logf("%d of 100 answers with an invention flagged", found)
}

// TestUngroundedTime bounds the time of texts of 64 KB.
func TestUngroundedTime(t *testing.T) {
	for _, h := range []string{
		"1", "1 ", "1,", "1.", "a.", "a1 ", "a_", "\"", "'a ", "`x` ", "“", "2026-03-01 ", "March 1 ", "a@", "a@b.c ", "$",
		"1:11", "ab c.pdf ", "a.pdf:1 ", "\xff", "é", "1. ", "\n", "- x\n", "/", "//", "http://", "INV-1-", "450 000 ", "'",
	} {
		text := strings.Repeat(h, 1<<16/len(h))
		promise.Ends(t, func() {
			ungrounded(text, text[:1000], []string{text})
			ungrounded(text, "", []string{"nothing"})
		}, "%q", h)
	}
}

func FuzzUngrounded(f *testing.F) {
	f.Add("The total is $450K, 1 March 2026, see a.pdf:14 and \"x\".", "q", "450,000 2026-03-01 a.pdf:14 x")
	f.Add("1.\n2) 1,2,3 1.2.3 00:00:00 007 3rd 5% T14:30", "0", "\xff1\u00a0000")
	f.Fuzz(func(t *testing.T, answer, question, result string) {
		for _, c := range ungrounded(answer, question, []string{result, answer}) {
			if c == "" {
				t.Fatalf("an empty claim in %q", answer)
			}
		}
	})
}
