package funnel

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

func TestDecide(t *testing.T) {
	model := Policy{Window: 100_000, Response: 8_000, Prompt: 10_000, Emergency: 2_000} // usable 80,000; a summary is due over 64,000
	with := func(p Policy, change func(*Policy)) Policy { change(&p); return p }
	cases := []struct {
		name   string
		policy Policy
		tokens int64
		spent  int
		want   Decision
	}{
		{"the zero policy knows no window", Policy{}, 1 << 40, 0, Decision{OK, "no context window is known", 0, 0}},
		{"a share without a window decides nothing", Policy{Summary: 0.1}, 1 << 40, 9, Decision{OK, "no context window is known", 0, 0}},
		{"disabled goes before all", with(model, func(p *Policy) { p.Disabled = true }), 1 << 40, 80_000, Decision{OK, "the funnel is switched off", 0, 0}},
		{"it fits", model, 500, 0, Decision{OK, "500 tokens fit into the 80000 left", 0, 80_000}},
		{"nothing is always ok", model, 0, 64_000, Decision{OK, "0 tokens fit into the 16000 left", 0, 16_000}},
		{"exactly to the mark", model, 64_000, 0, Decision{OK, "64000 tokens fit into the 80000 left", 0, 80_000}},
		{"one over the mark", model, 64_001, 0, Decision{NeedsSummary, "64001 of 80000 usable tokens would be spent, over 64000", 1, 80_000}},
		{"what is spent counts to the mark", model, 5_000, 60_000, Decision{NeedsSummary, "65000 of 80000 usable tokens would be spent, over 64000", 1_000, 20_000}},
		{"exactly what is left", model, 20_000, 60_000, Decision{NeedsSummary, "80000 of 80000 usable tokens would be spent, over 64000", 16_000, 20_000}},
		{"over what is left goes before the mark", model, 20_001, 60_000, Decision{NeedsSummary, "20001 tokens do not fit into the 20000 left", 1, 20_000}},
		{"room for the least receipt", model, 161, 79_840, Decision{NeedsSummary, "161 tokens do not fit into the 160 left", 1, 160}},
		{"no room for the least receipt", model, 160, 79_841, Decision{Reject, "160 tokens, and only 159 left", 1, 159}},
		{"a little that fits is not rejected", model, 159, 79_841, Decision{NeedsSummary, "80000 of 80000 usable tokens would be spent, over 64000", 16_000, 159}},
		{"overspent", model, 1, 90_000, Decision{Reject, "1 tokens, and only 0 left", 1, 0}},
		{"reserves over the window", Policy{Window: 10, Response: 20}, 1, 0, Decision{Reject, "1 tokens, and only 0 left", 1, 0}},
		{"share of the caller's", with(model, func(p *Policy) { p.Summary = 0.5 }), 40_001, 0, Decision{NeedsSummary, "40001 of 80000 usable tokens would be spent, over 40000", 1, 80_000}},
		{"dry run decides the same", with(model, func(p *Policy) { p.DryRun = true }), 160, 79_841, Decision{Reject, "160 tokens, and only 159 left", 1, 159}},
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
			Summary:  rapid.Float64Range(0, 1).Draw(t, "summary"),
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

func TestLimitsOutOfRangeAreRefusedByName(t *testing.T) {
	cases := []struct {
		o    Options
		want string
	}{
		{Options{Limits: Limits{ReceiptTokens: 159}}, "limits: receipt tokens must be from 160 to 4000, not 159"},
		{Options{Limits: Limits{ReceiptTokens: 4001}}, "limits: receipt tokens must be from 160 to 4000, not 4001"},
		{Options{Limits: Limits{LargeLines: -1}}, "limits: large lines must be from 1 to 10000, not -1"},
		{Options{Limits: Limits{PageTokens: 10}}, "limits: page tokens must be from 400 to 40000, not 10"},
		{Options{Policy: Policy{Window: 1000, Response: 900}}, "policy: of a window of 1000 tokens less than 160 are left"},
		{Options{Policy: Policy{Summary: 2}}, "policy: summary share 2 is not between 0 and 1"},
	}
	for _, c := range cases {
		if _, err := New(c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("New(%+v): %v, want %s", c.o, err, c.want)
		}
	}
	f, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := Limits{LargeLines: 50, LargeChars: 2000, HeadLines: 10, TailLines: 5, ReceiptTokens: 600, PageTokens: 4000}
	if f.o.Limits != want {
		t.Errorf("defaults %+v, want %+v", f.o.Limits, want)
	}
}

func TestSpentIsBoundedAndReset(t *testing.T) {
	var s spent
	s.add(Session{ID: "a"}, 10)
	s.add(Session{ID: "a", Owner: "local"}, 5)
	s.add(Session{ID: "a", Owner: "other"}, 1)
	if got := s.of(Session{ID: "a"}); got != 15 {
		t.Errorf("spent %d, want 15", got)
	}
	s.reset(Session{ID: "a"})
	if got, other := s.of(Session{ID: "a"}), s.of(Session{ID: "a", Owner: "other"}); got != 0 || other != 1 {
		t.Errorf("after a reset: %d, and the other owner's %d", got, other)
	}
	for i := range 2 * maxSessions {
		s.add(Session{ID: string(rune(i + 256))}, 1)
	}
	if len(s.by) > maxSessions {
		t.Errorf("%d sessions are held", len(s.by))
	}
}

// Calls that are made at once spend no more than one after another: each waits with its rows until all have some.
func TestCallsAtOnceDoNotOverspend(t *testing.T) {
	const usable, calls = 1000, 8
	f := funnelOf(t, Options{Policy: Policy{Window: usable}})
	var all, done sync.WaitGroup
	all.Add(calls)
	rows := tool(tools.Tool{Name: "jq", Paged: true}, func(_ context.Context, out tools.Output) error {
		defer func() { all.Done(); all.Wait() }()
		for range 40 {
			if out.Row([]byte("a row of a page that is made beside others"), tools.Call{}) != nil {
				break // the page is full
			}
		}
		return nil
	})
	var shown, whole, none atomic.Int64
	for range calls {
		done.Go(func() {
			a, err := f.Call(t.Context(), Request{Tool: rows})
			switch {
			case err != nil || len(a.Blocks) == 0:
				t.Error(err, a)
			case strings.HasPrefix(a.Blocks[0].Text, "not shown: ") && !a.Receipts[0].Complete:
				none.Add(1)
			default:
				whole.Add(1)
				shown.Add(a.Receipts[0].ShownTokens)
			}
		})
	}
	done.Wait()
	if whole.Load() == 0 || none.Load() == 0 || shown.Load() > usable {
		t.Errorf("%d answers show %d of %d tokens; %d say that they show nothing", whole.Load(), shown.Load(), usable, none.Load())
	}
}
