package server

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
)

func TestBadFrames(t *testing.T) {
	c := newClient(t, newTestServer(t, func(o *Options) { o.Mask = secrets.New() }))
	frames := servertest.BadFrames()
	if len(frames) < 42 {
		t.Errorf("%d cases, want at least 42", len(frames))
	}
	for _, f := range frames {
		t.Run(f.Name, func(t *testing.T) {
			message := c.ask(f.Line)
			if f.Code == 0 {
				expect.Equal(t, message, "", "answered")
			} else {
				got := servertest.Read(t, message)
				if got.Error == nil || got.Error.Code != f.Code || string(got.ID) != f.Id ||
					!strings.Contains(got.Error.Message, f.Says) {
					t.Errorf("want code %d, id %s, %q; got %.400s", f.Code, f.Id, f.Says, message)
				}
				if len(message) > 700 {
					t.Errorf("the answer is %d bytes long", len(message))
				}
			}
			if got := c.ask(
				`{"jsonrpc":"2.0","id":"after","method":"ping"}`,
			); got != `{"jsonrpc":"2.0","id":"after","result":{}}` {
				t.Errorf("ping afterwards: %s", got)
			}
		})
	}
}

// TestIDsAreKept is the control of the table above, too: sound messages are served under their ids.
func TestIDsAreKept(t *testing.T) {
	c := newClient(t, newTestServer(t))
	for _, id := range []string{
		"0", "-1", "-0", "9007199254740993", "-9007199254740993", "18446744073709551617", strings.Repeat("9", 256),
		`""`, `"a"`, `"0"`, `"\u0061\n"`, `"ключ 🔑"`, `"<&>"`, `"` + strings.Repeat("k", 254) + `"`,
	} {
		for _, method := range []string{"ping", "tools/list", "tools/lost", "prompts/get"} {
			message := c.ask(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`)
			if want := `{"jsonrpc":"2.0","id":` + id + `,`; !strings.HasPrefix(message, want) {
				t.Errorf("%s: want %s…, got %.300s", method, want, message)
			}
		}
	}
}

func TestSoundFrames(t *testing.T) {
	c := newClient(t, newTestServer(t))
	for name, line := range map[string]string{
		"keys in another order": `{"params":{},"method":"ping","id":1,"jsonrpc":"2.0"}`,
		"spelt by escapes":      `{"jsonrpc":"2.0","\u0069d":1,"m\u0065thod":"p\u0069ng"}`,
		"space":                 " { \"jsonrpc\" : \"2.0\" , \"id\" : 1 , \"method\" : \"ping\" } \r",
		"params null":           `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`,
		"_meta null":            `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":null}}`,
		"an unknown key":        `{"jsonrpc":"2.0","id":1,"method":"ping","trace":"x"}`,
		"unknown _meta":         `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x/y":1}}}`,
	} {
		expect.Equal(t, c.ask(line), `{"jsonrpc":"2.0","id":1,"result":{}}`, name)
	}
}

// TestFaultThatCannotBeMasked shows nothing of what the client sent, and the connection goes on.
func TestFaultThatCannotBeMasked(t *testing.T) {
	c := newClient(t, newTestServer(t, func(o *Options) { o.Mask = &secrets.Masker{} }))
	for _, method := range []string{"tools/lost", "logging/setLevel"} {
		got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"level":"lost"}}`)
		if answer := servertest.Read(t, got); answer.Error == nil || answer.Error.Message != secrets.Unsearched {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// FuzzFrames has any line answered by at most one well-formed message, with an id that stands in it,
// and never a panic.
func FuzzFrames(f *testing.F) {
	for _, b := range servertest.BadFrames() {
		if len(b.Line) < 4096 {
			f.Add([]byte(b.Line))
		}
	}
	f.Add(
		[]byte(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"},"_meta":{"progressToken":1}}}`,
		),
	)
	f.Add(
		[]byte(
			`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"director"},"argument":{"name":"task","value":""}}}`,
		),
	)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{` + servertest.ModernMeta + `}}`))
	c := newClient(f, newTestServer(f))
	f.Fuzz(func(t *testing.T, line []byte) {
		answers := 0
		c.conn.Handle(t.Context(), line, func(m []byte, answer func()) error {
			var got struct {
				JSONRPC string
				ID      json.RawMessage
				Result  json.RawMessage
				Error   *jsonrpc.Fault
			}
			if err := json.Unmarshal(m, &got); err != nil || got.JSONRPC != "2.0" {
				t.Fatalf("%v: %q", err, m)
			}
			if answer == nil {
				return nil
			}
			answers++
			if (got.Result == nil) == (got.Error == nil) {
				t.Errorf("%q has neither or both of result and error", m)
			}
			if id := string(got.ID); id != "null" && !strings.Contains(string(line), id) {
				t.Errorf("the id %s does not stand in %q", id, line)
			}
			if got.Error != nil && len(m) > 2000 {
				t.Errorf("an error of %d bytes", len(m))
			}
			return nil
		})
		if answers > 1 {
			t.Errorf("%d answers to %q", answers, line)
		}
	})
}
