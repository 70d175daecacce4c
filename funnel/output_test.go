package funnel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// TestOrderOfOutput checks that no byte is lost, or taken for another stream, without an error: whatever the order in
// which a tool that is not paged writes, opens the streams and asks for a page.
func TestOrderOfOutput(t *testing.T) {
	row := func(out tools.Output, text string) error { return out.Page().Row([]byte(text), tools.Call{}) }
	for name, c := range map[string]struct {
		run  func(out tools.Output) error
		want string // the beginning of the answer
		fail error
	}{
		"streams first": {want: "one\nstderr| two\n", run: func(out tools.Output) error {
			stream := out.Streams("make")
			_, err := fmt.Fprintln(stream(false), "one")
			_, err2 := fmt.Fprintln(stream(true), "two")
			return errors.Join(err, err2)
		}},
		"streams late": {want: "one\n", fail: errBegun, run: func(out tools.Output) error {
			_, _ = fmt.Fprintln(out, "one")
			_, err := fmt.Fprintln(out.Streams("make")(true), "two")
			return err
		}},
		"page late": {want: "one\ntwo\n", run: func(out tools.Output) error {
			_, _ = fmt.Fprintln(out, "one")
			return row(out, "two")
		}},
		"write after a row": {want: "one", fail: errPaged, run: func(out tools.Output) error {
			_ = row(out, "one")
			_, err := fmt.Fprintln(out, "two")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := funnelOf(t, Options{Store: storeIn(t, observations.Options{})})
			var err error
			a := answered(t, f, Request{Tool: tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
				err = c.run(out)
				return nil
			})})
			if !errors.Is(err, c.fail) || !strings.HasPrefix(texted(a), c.want) {
				t.Errorf("%v; %q", err, texted(a))
			}
		})
	}
}
