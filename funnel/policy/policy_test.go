package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestDecide(t *testing.T) {
	// usable 80,000; a summary is due over 64,000
	model := Policy{Window: 100_000, Response: 18_000, Emergency: 2_000}
	with := func(p Policy, change func(*Policy)) Policy { change(&p); return p }
	shown := func(n int) Spent { return Spent{Tokens: n} }
	reported := func(n int) Spent { return Spent{Tokens: n, Source: "claude"} }
	cases := []struct {
		name    string
		policy  Policy
		tokens  int64
		margin  float64
		spent   Spent
		verdict Verdict
		reason  string
		deficit int
		left    int
	}{
		{"the zero policy knows no window", Policy{}, 1 << 40, 0, shown(0), OK, "no context window is known", 0, 0},
		{"disabled goes before all", with(model, func(p *Policy) { p.Disabled = true }), 1 << 40, 0, reported(80_000),
			OK, "the funnel is switched off", 0, 0},
		{"it fits", model, 500, 0, shown(0), OK, "500 tokens fit into the 80000 left", 0, 80_000},
		{"nothing is always ok", model, 0, 0, reported(90_000), OK, "0 tokens fit into the 0 left", 0, 0},
		{"exactly to the mark", model, 64_000, 0, shown(0), OK, "64000 tokens fit into the 80000 left", 0, 80_000},
		{"one over the mark", model, 64_001, 0, shown(0),
			NeedsSummary, "64001 of 80000 usable tokens would be spent, over 64000", 1, 80_000},
		{"an estimate counts with its margin", model, 52_000, .25, shown(0),
			NeedsSummary, "65000 of 80000 usable tokens would be spent, over 64000", 1_000, 80_000},
		{"what is spent counts to the mark", model, 5_000, 0, shown(60_000),
			NeedsSummary, "65000 of 80000 usable tokens would be spent, over 64000", 1_000, 20_000},
		{"exactly what is left", model, 20_000, 0, shown(60_000),
			NeedsSummary, "80000 of 80000 usable tokens would be spent, over 64000", 16_000, 20_000},
		{"over what is left goes before the mark", model, 20_001, 0, shown(60_000),
			NeedsSummary, "20001 tokens do not fit into the 20000 left", 1, 20_000},
		{"room for the least receipt", model, 161, 0, reported(79_840),
			NeedsSummary, "161 tokens do not fit into the 160 left", 1, 160},
		{"no room for the least receipt", model, 160, 0, reported(79_841), Reject, "160 tokens, and only 159 left", 1, 159},
		{"without a report the least receipt always fits", model, 161, 0, shown(1 << 30),
			NeedsSummary, "161 tokens do not fit into the 160 left", 1, 160},
		{"a little that fits is not rejected", model, 159, 0, reported(79_841),
			NeedsSummary, "80000 of 80000 usable tokens would be spent, over 64000", 16_000, 159},
		{"overspent", model, 1, 0, reported(90_000), Reject, "1 tokens, and only 0 left", 1, 0},
		{"the prompt budget is a limit", with(model, func(p *Policy) { p.Prompt = 10_000 }), 9_000, 0, shown(0),
			NeedsSummary, "9000 of 10000 usable tokens would be spent, over 8000", 1_000, 10_000},
		{"a prompt budget without a window", Policy{Prompt: 10_000}, 10_001, 0, shown(0),
			NeedsSummary, "10001 tokens do not fit into the 10000 left", 1, 10_000},
		{"a budget over the window limits nothing", with(model, func(p *Policy) { p.Prompt = 90_000 }), 500, 0, shown(0),
			OK, "500 tokens fit into the 80000 left", 0, 80_000},
		{"the reported window goes before the setting", model, 500, 0,
			Spent{Tokens: 1_000, Source: "claude", Window: 30_000}, OK, "500 tokens fit into the 9000 left", 0, 9_000},
		{"so does the reported reserve", model, 500, 0, Spent{Source: "claude", Window: 30_000, Response: 8_000},
			OK, "500 tokens fit into the 20000 left", 0, 20_000},
		{"the table, for usage without a window", Policy{Model: "claude-sonnet-4-5"}, 500, 0, reported(100_000),
			OK, "500 tokens fit into the 100000 left", 0, 100_000},
		{"the table says nothing of what only we have shown", Policy{Model: "claude-sonnet-4-5"}, 1 << 20, 0, shown(100_000),
			OK, "no context window is known", 0, 0},
		{"an unknown model", Policy{Model: "unheard-of"}, 1 << 20, 0, reported(100_000),
			OK, "no context window is known", 0, 0},
		{"dry run decides the same", with(model, func(p *Policy) { p.DryRun = true }), 160, 0, reported(79_841),
			Reject, "160 tokens, and only 159 left", 1, 159},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := c.policy.Decide(Size{Tokens: c.tokens, Margin: c.margin}, c.spent)
			if got.Verdict != c.verdict || got.Reason != c.reason || got.Deficit != c.deficit || got.Left != c.left ||
				got.DryRun != c.policy.DryRun {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestWindowFrom checks that a decision says whose window applied.
func TestWindowFrom(t *testing.T) {
	p := Policy{Window: 100_000, Model: "gpt-4o"}
	for from, s := range map[string]Spent{"setting": {Source: "codex"}, "reported": {Source: "codex", Window: 50_000}} {
		if d := p.Decide(Size{}, s); d.WindowFrom != from || d.Source != "codex" || d.Window == 0 {
			t.Errorf("%s: %+v", from, d)
		}
	}
	p.Window = 0
	if d := p.Decide(Size{}, Spent{Source: "codex"}); d.WindowFrom != "table" || d.Window != 128_000 {
		t.Errorf("%+v", d)
	}
}

func TestValidate(t *testing.T) {
	for want, p := range map[string]Policy{
		"the context window must be from 0 to 1000000000 tokens, not -1": {Window: -1},
		"the prompt budget must be":                                      {Prompt: 1_000_000_000_000_000_000},
		"the response reserve must be":                                   {Response: -5},
		"less than 160 are left":                                         {Window: 1000, Response: 900},
		"a prompt budget of 159 t":                                       {Prompt: 159},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	expect.OK(t, (Policy{Window: 200_000, Response: 4096, Emergency: 1024, Prompt: 150_000}).Validate())
}

func TestDecideIsPureAndMonotone(t *testing.T) {
	rank := map[Verdict]int{OK: 0, NeedsSummary: 1, Reject: 2}
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Window:   rapid.IntRange(0, 300_000).Draw(t, "window"),
			Response: rapid.IntRange(0, 20_000).Draw(t, "response"),
			Prompt:   rapid.IntRange(0, 20_000).Draw(t, "prompt"),
		}
		s := Size{
			Tokens: rapid.Int64Range(0, 500_000).Draw(t, "tokens"),
			Margin: rapid.SampledFrom([]float64{0, 0.01, 0.25}).Draw(t, "margin"),
		}
		spent := Spent{
			Tokens: rapid.IntRange(0, 400_000).Draw(t, "spent"),
			Source: rapid.SampledFrom([]string{"", "claude"}).Draw(t, "source"),
			Window: rapid.SampledFrom([]int{0, 8_000, 200_000}).Draw(t, "reported"),
		}
		d := p.Decide(s, spent)
		expect.MustEqual(t, p.Decide(s, spent), d)
		expect.MustEqual(t, d.Verdict == OK, d.Deficit == 0, "verdict and deficit disagree: %+v", d)
		if d.Verdict == Reject && spent.Source == "" {
			t.Fatalf("rejected without a report: %+v", d)
		}
		s.Tokens += rapid.Int64Range(0, 1000).Draw(t, "more")
		if more := p.Decide(s, spent); rank[more.Verdict] < rank[d.Verdict] {
			t.Fatalf("%+v became %+v for a larger output", d, more)
		}
		spent.Tokens += rapid.IntRange(0, 1000).Draw(t, "later")
		if later := p.Decide(s, spent); rank[later.Verdict] < rank[d.Verdict] {
			t.Fatalf("%+v became %+v later", d, later)
		}
	})
}
