package funnel

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// A panic while an output is read fails the call, and nothing is said to be kept.
func TestDefectWhileAnOutputIsRead(t *testing.T) {
	f := funnelOf(t, Options{Store: storeIn(t, observations.Options{})})
	broken := tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
		// its Write panics
		out.(*output).capture.RecordWith(func() (*observations.Recording, error) { return &observations.Recording{}, nil })
		_, err := out.Write(corpus.JSON1MB())
		return err
	})
	a, err := f.Call(t.Context(), Request{Args: json.RawMessage(`{}`), Tool: broken})
	expect.Must(t, err)
	if r := a.Receipts[0]; !a.Failed || r.Kept || r.Status != failure ||
		!strings.Contains(a.Blocks[0].Text, "a defect in the tool") {
		t.Errorf("failed %v, receipt %+v, %.300s", a.Failed, r, a.Blocks[0].Text)
	}
}
