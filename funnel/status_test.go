package funnel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/receipt"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func TestStoreThatFailsOnCommitIsTold(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	a := answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
		_, err := out.Write(numbered(400)) // still in memory
		if e := os.RemoveAll(s.Dir()); e != nil {
			t.Error(e)
		}
		if e := os.WriteFile(s.Dir(), nil, 0o600); e != nil { // no directory can be made in its place
			t.Error(e)
		}
		return err
	})})
	first, _, _ := strings.Cut(texted(a), "\n")
	if !regexp.MustCompile(`^LARGE OUTPUT DETECTED: not kept \(.+\)$`).MatchString(first) ||
		strings.Contains(first, s.Dir()) {
		t.Errorf("first line %q", first)
	}
	if r := a.Receipts[0]; r.Kept || r.ObservationID != "" || r.SHA256 != "" || a.Failed {
		t.Errorf("%+v", r)
	}
}

func TestFailureIsAnAnswer(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	fails := func(before []byte) runFunc {
		return func(_ context.Context, out tools.Output) error {
			_, _ = out.Write(before)
			return errors.New("open x: no such file; use find")
		}
	}
	a := answered(t, f, Request{Tool: tool(tools.Tool{}, fails(nil))})
	if texted(a) != "error: open x: no such file; use find" || !a.Failed || a.Receipts[0].Status != "failure" {
		t.Errorf("%q %+v", texted(a), a.Receipts[0])
	}
	a = answered(t, f, Request{Tool: tool(tools.Tool{}, fails([]byte("some output\n")))})
	if texted(a) != "error: open x: no such file; use find; what was written until then follows\n===\nsome output\n" ||
		!a.Receipts[0].Truncated || a.Receipts[0].Complete {
		t.Errorf("%q %+v", texted(a), a.Receipts[0])
	}
	a = answered(t, f, Request{Tool: tool(tools.Tool{}, fails(numbered(900)))})
	r := a.Receipts[0]
	if len(a.Blocks) != 2 || !strings.HasPrefix(a.Blocks[0].Text, "error: ") ||
		!strings.HasSuffix(a.Blocks[0].Text, "is kept as obs:"+r.ObservationID) ||
		!strings.HasPrefix(
			a.Blocks[1].Text,
			fmt.Sprintf("LARGE OUTPUT DETECTED: kept in part as obs:%s (first %d bytes)", r.ObservationID, len(numbered(900))),
		) {
		t.Errorf("%s", texted(a))
	}
	if !bytes.Equal(kept(t, s, r), numbered(900)) {
		t.Error("what was written before the failure is not what is kept")
	}
	a = answered(
		t, f,
		Request{
			Tool: tool(
				tools.Tool{}, func(context.Context, tools.Output) error { return errors.New(strings.Repeat("é\x1b", 40_000)) },
			),
		},
	)
	if n := len([]rune(texted(a))); n > maxError+len(text.ErrorPrefix) {
		t.Errorf("an error of %d chars", n)
	}
}

func TestExitCodeIsFailureButNotOfTheCall(t *testing.T) {
	a := answered(t, funnelOf(t, Options{}), Request{Tool: tool(tools.Tool{Name: "run"}, func(_ context.Context, out tools.Output) error {
		out.Count("exit_code", 2)
		out.Count("cost", 0.25)
		_, err := out.Write([]byte("no such target"))
		return err
	})})
	r := a.Receipts[0]
	if a.Failed || r.Status != "failure" || r.Metadata["exit_code"] != 2 || r.Cost == nil || *r.Cost != 0.25 ||
		!r.Complete {
		t.Errorf("%t %+v", a.Failed, r)
	}
}

// due is a context whose deadline passes when the test says so, however long that takes on a busy machine.
type due struct {
	context.Context
	passed chan struct{}
	at     time.Time
}

func newDue(t *testing.T) *due {
	return &due{t.Context(), make(chan struct{}), time.Now().Add(time.Minute)}
}

func (d *due) pass()                       { close(d.passed) }
func (d *due) Deadline() (time.Time, bool) { return d.at, true }
func (d *due) Done() <-chan struct{}       { return d.passed }

func (d *due) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestTimeout(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	for name, wait := range map[string]func(ctx context.Context){
		"a tool that looks at its context": func(ctx context.Context) { <-ctx.Done() },
		"a tool that does not":             func(context.Context) { time.Sleep(2 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, lines := range []int{0, 3, 900} {
				deadline := newDue(t)
				a, err := f.Call(deadline, Request{Args: json.RawMessage(`{}`), Tool: tool(tools.Tool{Name: "slow"}, func(ctx context.Context, out tools.Output) error {
					_, _ = out.Write(numbered(lines))
					deadline.pass()
					wait(ctx)
					if _, err := out.Write([]byte("too late")); err == nil {
						t.Error("a write after the deadline is taken")
					}
					return ctx.Err()
				})})
				expect.Must(t, err)
				r := a.Receipts[0]
				if !a.Failed || r.Status != "timeout" ||
					!regexp.MustCompile(`^error: slow timed out after (1m0s|5\ds); `).MatchString(a.Blocks[0].Text) {
					t.Errorf("%d lines: %q %+v", lines, texted(a), r)
				}
				switch {
				case lines == 900:
					if !strings.HasSuffix(a.Blocks[0].Text, "is kept as obs:"+r.ObservationID) ||
						!bytes.Equal(kept(t, s, r), numbered(lines)) || !r.Truncated {
						t.Errorf("%s", texted(a))
					}
				case lines == 3:
					if a.Blocks[1].Text != string(numbered(3)) || r.Kept {
						t.Errorf("%s", texted(a))
					}
				case len(a.Blocks) != 1:
					t.Errorf("%s", texted(a))
				}
			}
		})
	}
}

func TestCancelledCallIsNotAnsweredButWhatItWroteIsListed(t *testing.T) {
	s := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: s})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.Call(ctx, Request{Args: json.RawMessage(`{}`), Tool: tool(tools.Tool{}, func(ctx context.Context, out tools.Output) error {
		_, _ = out.Write([]byte("half of it"))
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	list, err := s.List(observations.Local, false)
	if err != nil || len(list) != 1 || list[0].Stats.Status != "cancelled" || list[0].Bytes != 10 {
		t.Errorf("%v %+v", err, list)
	}
	if _, err := f.Call(
		ctx, Request{Tool: tool(tools.Tool{}, func(context.Context, tools.Output) error { t.Error("it ran"); return nil })},
	); !errors.Is(err, context.Canceled) {
		t.Errorf("a call under a cancelled context: %v", err)
	}
}

func TestPanicIsAFailureWhoseStackIsInTheLogAlone(t *testing.T) {
	var log bytes.Buffer
	f := funnelOf(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	a := answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
		_, _ = out.Write([]byte("before"))
		panic("secret detail")
	})})
	if !a.Failed || !strings.HasPrefix(texted(a), "error: fetch broke off: a defect in the tool") ||
		!strings.Contains(texted(a), "before") {
		t.Errorf("%q", texted(a))
	}
	if strings.Contains(texted(a), "secret detail") || strings.Contains(texted(a), "goroutine") {
		t.Errorf("the panic is told: %q", texted(a))
	}
	if !strings.Contains(log.String(), "secret detail") || !strings.Contains(log.String(), "call_test.go") {
		t.Errorf("log: %s", log.String())
	}
}

// TestOwnCountNeverRejects calls far beyond the window that the operator set. No client reports its usage, so each
// answer is at least the smallest receipt.
func TestOwnCountNeverRejects(t *testing.T) {
	model := Policy{Window: 2000}
	f := funnelOf(t, Options{Policy: model})
	who := Session{ID: "s"}
	request := Request{Tool: tool(tools.Tool{}, writes(numbered(300))), Who: who}
	for range 40 {
		before := f.Spent(who)
		a := answered(t, f, request)
		r := a.Receipts[0]
		if r.Decision.Verdict != policy.NeedsSummary || !strings.Contains(texted(a), "total: 300 lines, ") {
			t.Fatalf("%+v: %s", r.Decision, texted(a))
		}
		if most := int64(max(min(model.Window-before, 600), policy.MinReceipt)); r.ShownTokens > most {
			t.Errorf("%d tokens shown, %d left", r.ShownTokens, model.Window-before)
		}
		expect.Equal(t, f.Spent(who), before+int(r.ShownTokens), "spent, %d and %d", before, r.ShownTokens)
	}
	if f.Spent(who) < 2*model.Window {
		t.Errorf("only %d spent", f.Spent(who))
	}
	f.Reset(who)
	expect.Equal(t, f.Spent(who), 0, "a reset does not reset")
	a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte("ok\n"))), Who: who})
	expect.Equal(t, texted(a), "ok\n", "a word costs less than any receipt")
}

func TestPolicyOff(t *testing.T) {
	out := numbered(300)
	request := Request{Tool: tool(tools.Tool{}, writes(out)), Who: Session{ID: "s"}}
	dry := funnelOf(t, Options{Policy: Policy{Window: 200, DryRun: true}})
	a := answered(t, dry, request)
	if a.Receipts[0].Decision.Verdict == policy.OK || !strings.Contains(texted(a), "--- head: 1-10 of 300 ---") {
		t.Errorf("dry run: %s", texted(a))
	}

	off := funnelOf(t, Options{Policy: Policy{Disabled: true}})
	if a := answered(t, off, request); texted(a) != string(out) || !a.Receipts[0].Complete {
		t.Errorf("disabled: %.200s", texted(a))
	}
	a = answered(t, off, Request{Tool: tool(tools.Tool{}, writes(numbered(30_000)))})
	if len(a.Blocks) != 2 || len(a.Blocks[1].Text) > receipt.MaxAnswer || a.Receipts[0].Complete ||
		!strings.Contains(a.Blocks[0].Text, fmt.Sprintf("\nshowing the first %d bytes below\n", len(a.Blocks[1].Text))) ||
		!strings.HasPrefix(string(numbered(30_000)), a.Blocks[1].Text) {
		t.Errorf("disabled over 1 MB: %d blocks, %s", len(a.Blocks), a.Blocks[0].Text)
	}
	// What is shown counts, which is four times what was written.
	a = answered(t, off, Request{Tool: tool(tools.Tool{}, writes(bytes.Repeat([]byte("\x01"), 300_000)))})
	if n := len(a.Blocks[len(a.Blocks)-1].Text); len(a.Blocks) != 2 || n > receipt.MaxAnswer || n < receipt.MaxAnswer/2 ||
		a.Receipts[0].Complete ||
		!strings.Contains(a.Blocks[0].Text, fmt.Sprintf("\nshowing the first %d bytes below\n", n/4)) {
		t.Errorf("disabled, hidden characters: %d blocks, the last of %d bytes", len(a.Blocks), n)
	}
}

func TestLimitsOfACallAreChecked(t *testing.T) {
	a := answered(
		t, funnelOf(t, Options{}), Request{Tool: tool(tools.Tool{}, writes(nil)), Limits: Limits{ReceiptTokens: 5000}},
	)
	if !a.Failed || texted(a) != "error: limits: receipt tokens must be from 160 to 4000, not 5000" {
		t.Errorf("%q", texted(a))
	}
}
