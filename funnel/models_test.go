package funnel

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Tokens of a model whose vocabulary is not public are told as an estimate everywhere: in a receipt's words, in its
// fields, of a small output, of a page, and in what is kept.
func TestAnEstimatedModelsTokensAreNeverExact(t *testing.T) {
	m, err := tokens.Parse("claude-opus-4-7")
	expect.Must(t, err)
	store := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: store, Counter: tokens.For(m)})
	large := writes(bytes.Repeat([]byte("a line of the output\n"), 1000))
	for name, made := range map[string]tools.Tool{
		"large": tool(tools.Tool{}, large), "small": tool(tools.Tool{}, writes([]byte("a few words"))), "page": pager(
			[]string{"one row", "two rows"}, 0, true, nil,
		),
	} {
		a := answered(t, f, Request{Tool: made})
		r := a.Receipts[0]
		if r.TokensExact || r.TokensMargin < m.Error {
			t.Errorf("%s: exact %v, margin %v", name, r.TokensExact, r.TokensMargin)
		}
		if name != "large" {
			continue
		}
		expect.Contains(t, regexp.MustCompile(`(?m)^total: .*`).FindString(texted(a)), ", ≈8400 ±35 % tokens")
		o, err := store.Stat(observations.Local, observations.ID(r.ObservationID))
		if err != nil || o.Stats.TokensMargin < m.Error {
			t.Errorf("kept with a margin of %v, %v", o.Stats.TokensMargin, err)
		}
	}
}

// What was kept by one model weighs for another as if it had been counted for that, where both have a vocabulary.
func TestWhatIsKeptWeighsByTheModel(t *testing.T) {
	model := func(name string) tokens.Model {
		m, err := tokens.Parse(name)
		expect.Must(t, err)
		return m
	}
	text := bytes.Repeat([]byte("a line of the output\n"), 1000)
	names := []string{"o200k_base", "cl100k_base", "claude-opus-4-7", "claude-3-opus", "gemini-pro"}
	for _, from := range names {
		store := storeIn(t, observations.Options{})
		kept := answered(
			t, funnelOf(t, Options{Store: store, Counter: tokens.For(model(from))}),
			Request{Tool: tool(tools.Tool{}, writes(text))},
		)
		o, err := store.Stat(observations.Local, observations.ID(kept.Receipts[0].ObservationID))
		expect.Must(t, err)
		for _, to := range names {
			asks := tools.New(tools.Tool{Name: "asks"}, func(_ context.Context, _ struct{}, in tools.Input, out tools.Output) error {
				n, off, ok := in.ObservationTokens(o.Stats)
				want := tokens.For(model(to)).Total(string(text))
				if known := model(from).Encoding == model(to).Encoding; ok != known || known &&
					(max(n-want.N, want.N-n) > 2 || math.Abs(off-want.Margin) > 1e-9) {
					t.Errorf("%s, kept by %s: %d ±%v, %t; counted %d ±%v", to, from, n, off, ok, want.N, want.Margin)
				}
				if n, _, ok := in.ObservationTokens(observations.Stats{Tokens: 7}); n != 7 || !ok {
					t.Errorf("%s, not told by which: %d, %t", to, n, ok)
				}
				return nil
			})
			answered(t, funnelOf(t, Options{Counter: tokens.For(model(to))}), Request{Tool: asks})
		}
	}
}

// A tool weighs by the model of the server too.
func TestToolsWeighByTheModel(t *testing.T) {
	m, err := tokens.Parse("claude-opus-4-7")
	expect.Must(t, err)
	for _, counter := range []*tokens.Counter{tokens.New(tokens.O200k), tokens.For(m)} {
		const words = "a few words of a text"
		weighed := tools.New(tools.Tool{Name: "weigh"}, func(_ context.Context, _ struct{}, in tools.Input, out tools.Output) error {
			s := in.NewTokenCounter()
			_, _ = s.Write([]byte(words))
			n, off := s.Total()
			_, err := fmt.Fprintln(out, n, off)
			return err
		})
		a := answered(t, funnelOf(t, Options{Counter: counter}), Request{Tool: weighed})
		want := counter.Total(words)
		if got := strings.TrimSpace(texted(a)); got != fmt.Sprint(want.N, want.Margin) {
			t.Errorf("a tool weighed %s, the counter %v", got, want)
		}
	}
}
