package funnel

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// TestLinkIsNamedOnlyWhereThereIsOne has one link for an output that is stored, in its receipt and for programs. The
// receipt that is stored has none.
func TestLinkIsNamedOnlyWhereThereIsOne(t *testing.T) {
	s := storeIn(t, observations.Options{})
	for _, link := range []func(string, observations.ID) string{
		nil, func(string, observations.ID) string { return "" },
		func(owner string, id observations.ID) string {
			return "https://funnel.example/link/" + owner + "~" + string(id)
		},
	} {
		want := ""
		f := funnelOf(t, Options{Store: s, Link: link})
		a := answered(t, f, Request{Tool: tool(tools.Tool{}, writes(numbered(600))), Who: Session{Owner: "anna"}})
		r := a.Receipts[0]
		if link != nil {
			want = link("anna", observations.ID(r.ObservationID))
		}
		expect.Equal(t, r.Link, want)
		expect.Equal(t, strings.Contains(texted(a), "\nlink: "+want+"\n"), want != "", texted(a))
		id, err := observations.ParseID(r.ObservationID)
		expect.Must(t, err)
		o, err := s.Stat("anna", id)
		expect.Must(t, err)
		expect.Equal(t, strings.Contains(o.Stats.Receipt, "link"), false, "the receipt that is kept names a link")
		small := answered(t, f, Request{Tool: tool(tools.Tool{}, writes([]byte("small\n"))), Who: Session{Owner: "anna"}})
		expect.Equal(t, small.Receipts[0].Link+texted(small), "small\n", "an output that is not stored")
	}
}

// TestCompleteOrNothing keeps no part of an output that must be complete.
func TestCompleteOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		most int64
		err  error
		kept bool
	}{
		"all of it": {kept: true}, "it failed": {err: errors.New("broken off")}, "it is too long": {most: 100},
	} {
		s := storeIn(t, observations.Options{MaxObservation: c.most})
		run := func(_ context.Context, out tools.Output) error {
			_, _ = out.Write(numbered(600))
			return c.err
		}
		for complete, kept := range map[bool]bool{true: c.kept, false: true} {
			r := answered(t, funnelOf(t, Options{Store: s}), Request{
				Tool: tool(tools.Tool{}, run), Keep: Always, Complete: complete,
			}).Receipts[0]
			expect.Equal(t, r.Kept, kept, name, complete)
			expect.Equal(t, r.NotKept == "", kept, name, complete, r.NotKept)
		}
		expect.Equal(t, observed(t, s), map[bool]int{true: 2, false: 1}[c.kept], name)
	}
}
