package funnel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

var question = tools.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"go on?"}`)}

// asker is a tool that writes much, asks, and does then what it likes.
func askerTool(then func(ctx context.Context, r json.RawMessage, err error, out tools.Output) error) tools.Tool {
	return tools.New(tools.Tool{Name: "asker"}, func(ctx context.Context, _ struct{}, in tools.Input, out tools.Output) error {
		if _, err := out.Write(bytes.Repeat([]byte("a line of text\n"), 20_000)); err != nil {
			return err
		}
		r, err := in.Ask(ctx, question)
		return then(ctx, r, err, out)
	})
}

// TestAskedRunLeavesNothing has the client answer by another call, whatever the tool makes of that.
func TestAskedRunLeavesNothing(t *testing.T) {
	store := storeIn(t, observations.Options{})
	f := funnelOf(t, Options{Store: store})
	for name, then := range map[string]func(context.Context, json.RawMessage, error, tools.Output) error{
		"hands it on": func(_ context.Context, _ json.RawMessage, err error, _ tools.Output) error { return err },
		"passes over": func(context.Context, json.RawMessage, error, tools.Output) error { return nil },
		"fails":       func(context.Context, json.RawMessage, error, tools.Output) error { return errors.New("otherwise") },
		"writes more": func(_ context.Context, _ json.RawMessage, _ error, out tools.Output) error {
			_, err := out.Write([]byte("x"))
			return err
		},
		"panics":        func(context.Context, json.RawMessage, error, tools.Output) error { panic("as it always does") },
		"does not come": func(context.Context, json.RawMessage, error, tools.Output) error { time.Sleep(2 * grace); return nil },
	} {
		a, err := f.Call(t.Context(), Request{
			Tool: askerTool(then), Args: json.RawMessage(`{}`),
			Ask: func(context.Context, tools.Question) (json.RawMessage, error) { return nil, tools.ErrAsked },
		})
		if !errors.Is(err, tools.ErrAsked) || len(a.Blocks) > 0 {
			t.Errorf("a tool that %s: %v, %+v", name, err, a)
		}
		expect.Equal(t, observed(t, store), 0, "a tool that %s, observations were kept", name)
	}
}

// TestAskedAndAnswered has the reply come at once, or the asking fail.
func TestAskedAndAnswered(t *testing.T) {
	f := funnelOf(t, Options{})
	says := askerTool(func(_ context.Context, r json.RawMessage, err error, _ tools.Output) error {
		if err == nil && string(r) == `"decline"` {
			return errors.New("declined")
		}
		return err
	})
	for _, k := range []struct {
		ask  tools.Asker
		want string
	}{
		{func(context.Context, tools.Question) (json.RawMessage, error) {
			return json.RawMessage(`"decline"`), nil
		}, "declined"},
		{func(
			context.Context, tools.Question,
		) (json.RawMessage, error) {
			return nil, tools.ErrNoReply
		}, "the client gave no reply"},
		{nil, "there is no client to ask"},
	} {
		a := answered(t, f, Request{Tool: says, Ask: k.ask})
		if !a.Failed || !bytes.Contains([]byte(texted(a)), []byte(k.want)) {
			t.Errorf("want %q in %.300s", k.want, texted(a))
		}
	}
}
