package funnel

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Tokens of a model whose vocabulary is not public are told as an estimate everywhere: in a receipt's words, in its
// fields, of a small output, of a page, and in what is kept.
func TestAnEstimatedModelsTokensAreNeverExact(t *testing.T) {
	m, err := tokens.Parse("claude-opus-4-7")
	if err != nil {
		t.Fatal(err)
	}
	store := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: store, Counter: tokens.For(m)})
	large := writes(bytes.Repeat([]byte("a line of the output\n"), 1000))
	for name, made := range map[string]tools.Tool{
		"large": tool(tools.Tool{}, large), "small": tool(tools.Tool{}, writes([]byte("a few words"))), "page": pager([]string{"one row", "two rows"}, 0, true, nil),
	} {
		a := answered(t, f, Request{Tool: made})
		r := a.Receipts[0]
		if r.TokensExact || r.TokensMargin < m.Error {
			t.Errorf("%s: exact %v, margin %v", name, r.TokensExact, r.TokensMargin)
		}
		if name != "large" {
			continue
		}
		if total := regexp.MustCompile(`(?m)^total: .*`).FindString(texted(a)); !strings.Contains(total, ", ≈8400 ±35 % tokens") {
			t.Errorf("the receipt says %q", total)
		}
		o, err := store.Look(observations.Local, observations.ID(r.ObservationID))
		if err != nil || o.Seen.TokensMargin < m.Error {
			t.Errorf("kept with a margin of %v, %v", o.Seen.TokensMargin, err)
		}
	}
}

// A tool weighs by the model of the server too.
func TestToolsWeighByTheModel(t *testing.T) {
	m, err := tokens.Parse("claude-opus-4-7")
	if err != nil {
		t.Fatal(err)
	}
	for _, counter := range []*tokens.Counter{tokens.New(tokens.O200k), tokens.For(m)} {
		const words = "a few words of a text"
		weighed := tools.New(tools.Tool{Name: "weigh"}, func(_ context.Context, _ struct{}, in tools.Input, out tools.Output) error {
			s := in.Weigh()
			_, _ = s.Write([]byte(words))
			n, off := s.Weight()
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
