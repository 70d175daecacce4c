package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	// usable 80,000; a summary is due over 64,000
	model := Policy{Window: 100_000, Response: 8_000, Prompt: 10_000, Emergency: 2_000}
	with := func(p Policy, change func(*Policy)) Policy { change(&p); return p }
	cases := []struct {
		name   string
		policy Policy
		tokens int64
		spent  int
		want   Decision
	}{
		{"the zero policy knows no window", Policy{}, 1 << 40, 0, Decision{OK, "no context window is known", 0, 0}},
		{"disabled goes before all", with(
			model, func(p *Policy) { p.Disabled = true },
		), 1 << 40, 80_000, Decision{OK, "the funnel is switched off", 0, 0}},
		{"it fits", model, 500, 0, Decision{OK, "500 tokens fit into the 80000 left", 0, 80_000}},
		{"nothing is always ok", model, 0, 64_000, Decision{OK, "0 tokens fit into the 16000 left", 0, 16_000}},
		{"exactly to the mark", model, 64_000, 0, Decision{OK, "64000 tokens fit into the 80000 left", 0, 80_000}},
		{"one over the mark", model, 64_001, 0, Decision{
			NeedsSummary, "64001 of 80000 usable tokens would be spent, over 64000", 1, 80_000,
		}},
		{"what is spent counts to the mark", model, 5_000, 60_000, Decision{
			NeedsSummary, "65000 of 80000 usable tokens would be spent, over 64000", 1_000, 20_000,
		}},
		{"exactly what is left", model, 20_000, 60_000, Decision{
			NeedsSummary, "80000 of 80000 usable tokens would be spent, over 64000", 16_000, 20_000,
		}},
		{"over what is left goes before the mark", model, 20_001, 60_000, Decision{
			NeedsSummary, "20001 tokens do not fit into the 20000 left", 1, 20_000,
		}},
		{"room for the least receipt", model, 161, 79_840, Decision{
			NeedsSummary, "161 tokens do not fit into the 160 left", 1, 160,
		}},
		{"no room for the least receipt", model, 160, 79_841, Decision{Reject, "160 tokens, and only 159 left", 1, 159}},
		{"a little that fits is not rejected", model, 159, 79_841, Decision{
			NeedsSummary, "80000 of 80000 usable tokens would be spent, over 64000", 16_000, 159,
		}},
		{"overspent", model, 1, 90_000, Decision{Reject, "1 tokens, and only 0 left", 1, 0}},
		{"reserves over the window", Policy{Window: 10, Response: 20}, 1, 0, Decision{
			Reject, "1 tokens, and only 0 left", 1, 0,
		}},
		{"dry run decides the same", with(model, func(p *Policy) { p.DryRun = true }), 160, 79_841, Decision{
			Reject, "160 tokens, and only 159 left", 1, 159,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.policy.Decide(Size{Tokens: c.tokens}, c.spent); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestDecideIsPureAndMonotone(t *testing.T) {
	rank := map[Verdict]int{OK: 0, NeedsSummary: 1, Reject: 2}
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Window:   rapid.IntRange(0, 300_000).Draw(t, "window"),
			Response: rapid.IntRange(0, 20_000).Draw(t, "response"),
			Prompt:   rapid.IntRange(0, 20_000).Draw(t, "prompt"),
		}
		s := Size{Tokens: rapid.Int64Range(0, 500_000).Draw(t, "tokens")}
		spent := rapid.IntRange(0, 400_000).Draw(t, "spent")
		d := p.Decide(s, spent)
		if again := p.Decide(s, spent); again != d {
			t.Fatalf("%+v, then %+v", d, again)
		}
		if (d.Verdict == OK) != (d.Deficit == 0) {
			t.Fatalf("verdict and deficit disagree: %+v", d)
		}
		s.Tokens += rapid.Int64Range(0, 1000).Draw(t, "more")
		if more := p.Decide(s, spent); rank[more.Verdict] < rank[d.Verdict] {
			t.Fatalf("%+v became %+v for a larger output", d, more)
		}
		if later := p.Decide(s, spent+rapid.IntRange(0, 1000).Draw(t, "later")); rank[later.Verdict] < rank[d.Verdict] {
			t.Fatalf("%+v became %+v later", d, later)
		}
	})
}
