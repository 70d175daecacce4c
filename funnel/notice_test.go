package funnel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// full is a funnel whose session reported that so many tokens of its window of 10,000 are left.
func full(t testing.TB, left int, o Options) *Funnel {
	t.Helper()
	o.Policy.Emergency = 1000
	f := funnelOf(t, o)
	if err := f.accounts.report(Session{}, usage.Usage{PromptTokens: 9000 - left, Window: 10_000, Source: "claude"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNotices checks what is shown when nothing fits: the first notice says what would, later ones are one constant
// line, and the output is kept whole.
func TestNotices(t *testing.T) {
	store := storeIn(t, observations.Options{})
	f := full(t, 100, Options{Store: store})
	request := Request{Tool: tool(tools.Tool{Less: "search with show=dirs"}, writes(numbered(300)))}
	a := answered(t, f, request)
	id := a.Receipts[0].ObservationID
	want := "context full: 100 tokens left (reported by claude), this answer takes "
	if s := texted(a); !strings.HasPrefix(s, want) ||
		!strings.Contains(s, "; total: 300 lines, 4200 tokens; kept as obs:"+id+"\n") ||
		!strings.Contains(s, "\nnext: search with show=dirs;") ||
		a.Receipts[0].ShownTokens > policy.FirstNotice {
		t.Errorf("%d tokens: %s", a.Receipts[0].ShownTokens, s)
	}
	a = answered(t, f, request)
	if s := texted(a); s != "context full: kept as obs:"+a.Receipts[0].ObservationID ||
		a.Receipts[0].ShownTokens > policy.Notice || a.Receipts[0].Complete {
		t.Errorf("%d tokens: %s", a.Receipts[0].ShownTokens, s)
	}
	r, err := store.Open(observations.Local, observations.ID(a.Receipts[0].ObservationID))
	expect.Must(t, err)
	defer r.Close() //nolint:errcheck // it was only read
	if got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size())); err != nil || !bytes.Equal(got, numbered(300)) {
		t.Errorf("%d bytes are stored, %v", len(got), err)
	}
	// A small output that would be shown whole is kept too.
	a = answered(t, f, Request{Tool: tool(tools.Tool{}, writes(numbered(20)))})
	expect.Equal(t, texted(a), "context full: kept as obs:"+a.Receipts[0].ObservationID)
	if a = answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte("ok\n")))}); texted(a) != "ok\n" {
		t.Errorf("a word costs no more than a notice: %q", texted(a))
	}
	// An error is clipped, not lost.
	a = answered(t, f, Request{Tool: tool(tools.Tool{}, func(context.Context, tools.Output) error {
		return errors.New("no such file: " + strings.Repeat("name/", 300))
	})})
	if s := texted(a); !strings.HasPrefix(s, "error: no such file: name/") ||
		a.Receipts[0].ShownTokens > policy.Notice {
		t.Errorf("%d tokens: %s", a.Receipts[0].ShownTokens, s)
	}
	// An image is not shown.
	a = answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
		_, err := out.Part("image/png", "x.png").Write([]byte("picture"))
		return err
	})})
	if len(a.Blocks) != 1 || a.Blocks[0].MIME != "" || texted(a) != "context full: not shown" {
		t.Errorf("%+v", a.Blocks)
	}
	// What is read of an observation is kept as that one.
	a = answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
		out.Source("obs:k3v9q2m7x4ab")
		_, err := out.Write(numbered(300))
		return err
	})})
	expect.Equal(t, texted(a), "context full: kept as obs:k3v9q2m7x4ab")
	a = f.Show(Request{About: "obs:k3v9q2m7x4ab"}, string(numbered(300)))
	expect.Equal(t, texted(a), "context full: kept as obs:k3v9q2m7x4ab")
	// A report with room ends it.
	request.Usage = &usage.Usage{Turn: "2", PromptTokens: 10, Window: 100_000, Source: "claude"}
	if a = answered(t, f, request); !strings.Contains(texted(a), "--- head: ") {
		t.Errorf("%s", texted(a))
	}
}

// TestNoticeNamesWhyNothingIsKept checks that the first notice and later ones say why an output is not stored.
func TestNoticeNamesWhyNothingIsKept(t *testing.T) {
	f := full(t, 100, Options{NoStore: errors.New("the disk is full")})
	for _, end := range []string{"; not kept: the disk is full\n", "context full: not kept: the disk is full"} {
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(numbered(300)))})
		expect.Contains(t, texted(a), end)
	}
}

// TestManyErrors checks that answers that do not fit, errors, notices and refused calls, take no more than what is left
// and the emergency buffer, however many a turn has. At last they are errors without a text, and a line before says so.
// A new turn has a new buffer.
func TestManyErrors(t *testing.T) {
	const calls = 600
	for _, r := range []Request{
		{Tool: tool(tools.Tool{}, writes(numbered(300)))},
		{Tool: tool(tools.Tool{}, writes([]byte("a line of few words\n")))},
		{Tool: tool(tools.Tool{}, func(context.Context, tools.Output) error {
			return errors.New("no such file: src/components/list.go; find has the names that there are")
		})},
		{Tool: tool(tools.Tool{}, func(context.Context, tools.Output) error {
			return errors.New(`unknown argument "source"; valid arguments: path (required)`)
		})},
		{Tool: tool(tools.Tool{}, writes(nil)), Limits: Limits{PageTokens: -1}},
	} {
		f := full(t, 84, Options{})
		for turn := range 2 {
			left := max(84-turn*4000, 0)
			u := usage.Usage{Turn: fmt.Sprint(turn), PromptTokens: 9000 - 84 + turn*4000, Window: 10_000, Source: "claude"}
			expect.Must(t, f.accounts.report(Session{}, u))
			shown, told, texts := 0, 0, 0
			for range calls {
				a := answered(t, f, r)
				n := int(a.Receipts[0].ShownTokens)
				if shown += n; n > policy.FirstNotice || n == 0 && (!a.Failed || len(a.Blocks) > 0) {
					t.Fatalf("%d tokens: %+v", n, a)
				}
				if n > 0 {
					texts++
				}
				if texted(a) == lastNotice {
					told = texts
				}
			}
			if most := left + f.options.Policy.Emergency; shown > most || shown < most-policy.FirstNotice || told != texts {
				t.Errorf("turn %d: %d tokens of %d in %d texts, line %d says that they end", turn, shown, most, texts, told)
			}
		}
	}
}

// TestNoticeOfAResource checks that the first notice of an observation that is read as a resource names a part of it.
func TestNoticeOfAResource(t *testing.T) {
	a := full(t, 100, Options{}).Show(Request{About: "obs:k3v9q2m7x4ab"}, string(numbered(300)))
	if s := texted(a); !strings.Contains(s, "; kept as obs:k3v9q2m7x4ab\n") ||
		!strings.Contains(s, `next: slice {"source":"obs:k3v9q2m7x4ab","lines":"1-3"}`) {
		t.Errorf("%s", s)
	}
}

// TestUncut checks that an output that must not be cut is shown whole if it fits, else kept and rejected.
func TestUncut(t *testing.T) {
	out := numbered(2000)
	request := Request{Tool: tool(tools.Tool{}, writes(out)), Uncut: true}
	if a := answered(t, funnelOf(t, Options{Store: storeIn(t, observations.Options{})}), request); texted(
		a,
	) != string(
		out,
	) {
		t.Errorf("%.100q", texted(a))
	}
	a := answered(t, full(t, 4000, Options{Store: storeIn(t, observations.Options{})}), request)
	if id := a.Receipts[0].ObservationID; id == "" ||
		!strings.HasSuffix(texted(a), " do not fit into the 4000 left; kept as obs:"+id) {
		t.Errorf("%.200s", texted(a))
	}
}

// TestNeverOverspent makes random calls, 32 at once, with random windows, reports and models: what is shown never
// exceeds what the client reported as left by more than the notices may take.
func TestNeverOverspent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		var accounts *usage.Accounts
		if rapid.Bool().Draw(rt, "stored") {
			accounts = usage.OpenAccounts(records.InDir(dir))
		}
		model, err := tokens.Parse(rapid.SampledFrom([]string{"o200k_base", "claude-sonnet-4-5"}).Draw(rt, "model"))
		if err != nil {
			rt.Fatal(err)
		}
		f, err := New(
			Options{
				Store:    storeIn(t, observations.Options{}),
				Accounts: accounts,
				Counter:  tokens.For(model),
				Policy: Policy{
					Response: rapid.IntRange(0, 3000).Draw(rt, "response"), Emergency: 1024,
				},
			},
		)
		if err != nil {
			rt.Fatal(err)
		}
		for round := range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			u := usage.Usage{
				Turn: fmt.Sprint(round), Source: "test",
				PromptTokens: rapid.IntRange(0, 60_000).
					Draw(rt, "prompt"),
				Window: rapid.IntRange(5_000, 60_000).Draw(rt, "window"),
			}
			if err := f.accounts.report(Session{}, u); err != nil {
				rt.Fatal(err)
			}
			checkRound(rt, f, u)
		}
		checkErrors(rt, f)
	})
}

func checkRound(rt *rapid.T, f *Funnel, u usage.Usage) {
	usable, _, _, _ := f.options.Policy.Usable(f.accounts.spent(Session{}))
	left := max(usable-u.PromptTokens, 0)
	requests := make([]Request, rapid.SampledFrom([]int{1, 4, 32}).Draw(rt, "calls"))
	for i := range requests {
		requests[i] = randomRequest(rt)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	shown, notices := 0, 0
	for _, r := range requests {
		wg.Go(func() {
			a, err := f.Call(context.Background(), r)
			if err != nil {
				rt.Error(err)
				return
			}
			n := policy.AtMost(a.Receipts[0].ShownTokens, f.options.Counter.Model().Error)
			for _, b := range a.Blocks {
				if b.MIME != "" {
					n += policy.ImageTokens
				}
			}
			mu.Lock()
			defer mu.Unlock()
			shown += n
			if n <= policy.Notice || strings.HasPrefix(a.Blocks[0].Text, contextFull) {
				notices++
			}
		})
	}
	wg.Wait()
	if most := left + policy.FirstNotice + notices*policy.Notice; shown > most {
		rt.Fatalf("context_budget_violation: %d tokens shown, %d left, %d notices", shown, left, notices)
	}
}

// checkErrors lets calls fail at once: a turn takes at most what was left and the emergency buffer.
func checkErrors(rt *rapid.T, f *Funnel) {
	calls := 100
	if testing.Short() {
		calls = 20
	}
	before := f.accounts.spent(Session{})
	usable, _, _, _ := f.options.Policy.Usable(before)
	most := max(usable-before.Tokens+before.Shown, 0) + f.options.Policy.Emergency
	out := numbered(rapid.SampledFrom([]int{0, 1, 300}).Draw(rt, "error"))
	failing := Request{Tool: tool(tools.Tool{}, func(context.Context, tools.Output) error {
		return errors.New("no such file: " + string(out))
	})}
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if _, err := f.Call(context.Background(), failing); err != nil {
				rt.Error(err)
			}
		})
	}
	wg.Wait()
	if n := f.accounts.spent(Session{}).Shown; n > most {
		rt.Fatalf("%d tokens shown in one turn, at most %d", n, most)
	}
}

// randomRequest returns a call with an output, rows, an image or an error of a random size.
func randomRequest(rt *rapid.T) Request {
	n := rapid.SampledFrom([]int{0, 1, 5, 30, 300, 3000}).Draw(rt, "lines")
	out := numbered(n)
	switch rapid.IntRange(0, 5).Draw(rt, "what") {
	case 0:
		return Request{Tool: pager(rowsOf(n), 0, true, noMore)}
	case 1:
		return Request{Tool: tool(tools.Tool{}, func(_ context.Context, w tools.Output) error {
			_, _ = w.Write(out)
			return errors.New("failed: " + string(numbered(min(n, 300))))
		})}
	case 2:
		return Request{Tool: tool(tools.Tool{}, func(_ context.Context, w tools.Output) error {
			_, err := io.WriteString(w.Part("image/png", "x.png"), "picture")
			return err
		})}
	case 3:
		return Request{Tool: tool(tools.Tool{}, writes(out)), Keep: Always}
	case 4:
		return Request{Tool: tool(tools.Tool{}, writes(out)), Uncut: true}
	default:
		return Request{Tool: tool(tools.Tool{}, func(_ context.Context, w tools.Output) error {
			w.Note("a note of " + string(numbered(min(n, 30))))
			_, err := w.Write(out)
			return err
		})}
	}
}
