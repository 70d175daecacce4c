package funnel

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// shownLast returns the last call of a trace, and what it showed.
func shownLast(t testing.TB, l trace.Store) (last trace.Call, s trace.Shown) {
	t.Helper()
	for c, err := range l.Read(time.Time{}, nil) {
		expect.Must(t, err)
		last = c
	}
	_, s, err := l.Shown(last.Ref)
	expect.Must(t, err)
	expect.Equal(t, s.Bytes, last.ShownBytes)
	return last, s
}

// TestShownTextsAreTraced has whole outputs, receipts, errors, refusals, images, texts of the server and results of
// other servers: the trace has what the model read, and the arguments.
func TestShownTextsAreTraced(t *testing.T) {
	l := expect.Value(trace.Open(t.TempDir()))(t)
	defer l.Close() //nolint:errcheck // a test's log
	f := funnelOf(t, Options{Store: storeIn(t, observations.Options{}), Trace: l, Mask: secrets.New()})
	passes := func(r tools.Result) runFunc {
		return func(_ context.Context, out tools.Output) error {
			out.Pass(r)
			_, err := out.Write([]byte("the text\n"))
			return err
		}
	}
	picture := func(_ context.Context, out tools.Output) error {
		_, err := out.Part("image/png", "a.png").Write(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 1226)...))
		return err
	}
	raw := json.RawMessage(`{"content":[{"type":"text","text":"the text"}]}`)
	for name, c := range map[string]struct {
		run  runFunc
		via  string
		want string // "": the texts of the answer, joined
	}{
		"whole":   {run: writes([]byte("a line\n\x1b[31m"))},
		"receipt": {run: writes(numbered(500))},
		"error":   {run: func(context.Context, tools.Output) error { return context.DeadlineExceeded }},
		"picture": {run: picture, want: "[image/png, 1,234 bytes]"},
		"passed":  {run: passes(tools.Result{Raw: raw, Text: "the text\n"}), want: "the text\n"},
		"second":  {run: passes(tools.Result{Raw: raw, Text: "the text", Second: `{"a":1}`, Pass: tools.PassNever})},
		"observed": {
			run: passes(tools.Result{Raw: raw, Text: "all\x1b of it"}), via: trace.ViaObserved, want: `all\x1b of it`,
		},
		"not stored": {
			run:  passes(tools.Result{Raw: raw, Text: "the text, and more", NotStored: true, Pass: tools.PassNotStored}),
			want: "the text, and more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := f.Call(t.Context(), Request{
				Tool: tool(tools.Tool{Name: "a"}, c.run), Args: json.RawMessage(`{ }`), Via: c.via, Who: Session{ID: "s"},
			})
			expect.Must(t, err)
			var texts []string
			for _, b := range a.Blocks {
				texts = append(texts, b.Text)
			}
			if c.want == "" {
				c.want = strings.Join(texts, "\n\n")
			}
			_, got := shownLast(t, l)
			expect.Equal(t, got.Text, c.want)
			expect.Equal(t, string(got.Args), "{}")
		})
	}
	a := f.Show(Request{
		Tool: tools.Tool{Name: "resource"}, Args: json.RawMessage(`{"source":"obs:x"}`), Via: trace.ViaResource,
	}, "its text\n")
	call, got := shownLast(t, l)
	expect.Same(t, []string{call.Via, got.Text, string(got.Args)},
		[]string{trace.ViaResource, a.Blocks[0].Text, `{"source":"obs:x"}`})
	text := shownText([]Block{
		{Text: "one"}, {MIME: "image/png", Data: make([]byte, 1_234_567)}, {MIME: "image/gif", Data: make([]byte, 12)},
	})
	expect.Equal(t, text, "one\n\n[image/png, 1,234,567 bytes]\n\n[image/gif, 12 bytes]")
}

// TestTracedTextsAreMasked has secrets in arguments and in an output; without a masker they are found.
func TestTracedTextsAreMasked(t *testing.T) {
	for _, mask := range []*secrets.Masker{secrets.New(), nil} {
		l := expect.Value(trace.Open(t.TempDir()))(t)
		f := funnelOf(t, Options{Store: storeIn(t, observations.Options{}), Trace: l, Mask: mask})
		found := 0
		for _, s := range corpus.Secrets(41) {
			args := expect.Value(json.Marshal(map[string]string{"pattern": "x " + s.Line}))(t)
			_, err := f.Call(t.Context(), Request{
				Tool: tool(tools.Tool{}, writes([]byte("line\n"+s.Line+"\n"))), Args: args, Who: Session{ID: "s"},
			})
			expect.Must(t, err)
			_, got := shownLast(t, l)
			if strings.Contains(got.Text, s.Hidden) || strings.Contains(string(got.Args), s.Hidden) {
				found++
				if mask != nil {
					t.Errorf("%s: %s is in the trace", s.Format, s.Hidden)
				}
			}
		}
		if mask == nil && found < len(corpus.Secrets(41))*9/10 {
			t.Errorf("control: only %d secrets are found without a masker", found)
		}
		expect.Must(t, l.Close())
	}
}
