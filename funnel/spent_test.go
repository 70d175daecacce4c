package funnel

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func TestLimitsOutOfRangeAreRefusedByName(t *testing.T) {
	cases := []struct {
		o    Options
		want string
	}{
		{Options{Limits: Limits{ReceiptTokens: 159}}, "limits: receipt tokens must be from 160 to 4000, not 159"},
		{Options{Limits: Limits{ReceiptTokens: 4001}}, "limits: receipt tokens must be from 160 to 4000, not 4001"},
		{Options{Limits: Limits{MinSaving: 91}}, "limits: min saving must be from 1 to 90, not 91"},
		{Options{Limits: Limits{LargeLines: -1}}, "limits: large lines must be from 1 to 10000, not -1"},
		{Options{Limits: Limits{PageTokens: 10}}, "limits: page tokens must be from 400 to 40000, not 10"},
		{
			Options{Policy: Policy{Window: 1000, Response: 900}},
			"policy: of a window of 1000 tokens less than 160 are left",
		},
	}
	for _, c := range cases {
		if _, err := New(c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("New(%+v): %v, want %s", c.o, err, c.want)
		}
	}
	f, err := New(Options{})
	expect.Must(t, err)
	want := Limits{
		LargeLines:    50,
		LargeChars:    2000,
		HeadLines:     10,
		TailLines:     5,
		ReceiptTokens: 600,
		MinSaving:     40,
		PageTokens:    4000,
	}
	expect.Equal(t, f.options.Limits, want, "defaults")
}

func TestSpentIsBoundedAndReset(t *testing.T) {
	l := newSessionAccounts(nil)
	spent := func(who Session) int { return l.spent(who).Tokens }
	add := func(who Session, n int) {
		expect.OK(t, l.add(who, shown{tokens: n}))
	}
	add(Session{ID: "a"}, 10)
	add(Session{ID: "a", Owner: "local"}, 5)
	add(Session{ID: "a", Owner: "other"}, 1)
	expect.Equal(t, spent(Session{ID: "a"}), 15, "spent")
	l.reset(Session{ID: "a"})
	if got, other := spent(Session{ID: "a"}), spent(Session{ID: "a", Owner: "other"}); got != 0 || other != 1 {
		t.Errorf("after a reset: %d, and the other owner's %d", got, other)
	}
	for i := range 2 * maxSessions {
		add(Session{ID: string(rune(i + 256))}, 1)
	}
	held := 0
	for i := range 2 * maxSessions {
		held += spent(Session{ID: string(rune(i + 256))})
	}
	expect.Equal(t, held, maxSessions, "sessions are held")
}

// Calls that are made at once spend no more than one after another: each waits with its rows until all have some. A page
// that no longer fits names the next call.
func TestCallsAtOnceDoNotOverspend(t *testing.T) {
	const usable, calls = 1000, 8
	f := funnelOf(t, Options{Policy: Policy{Window: usable}})
	expect.Must(t, f.accounts.report(Session{}, usage.Usage{Source: "test"}))
	var all, done sync.WaitGroup
	all.Add(calls)
	rows := tool(tools.Tool{Name: "jq", Paged: true}, func(_ context.Context, out tools.Output) error {
		defer func() { all.Done(); all.Wait() }()
		for range 40 {
			if out.Page().Row([]byte("a row of a page that is made beside others"), tools.Call{}) != nil {
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
			case (strings.HasPrefix(a.Blocks[0].Text, "not shown: ") || strings.HasPrefix(a.Blocks[0].Text, contextFull)) &&
				!a.Receipts[0].Complete:
				none.Add(1)
			default:
				whole.Add(1)
				shown.Add(a.Receipts[0].ShownTokens)
			}
		})
	}
	done.Wait()
	if whole.Load() == 0 || none.Load() == 0 || shown.Load() > usable {
		t.Errorf(
			"%d answers show %d of %d tokens; %d say that they show nothing",
			whole.Load(),
			shown.Load(),
			usable,
			none.Load(),
		)
	}
}
