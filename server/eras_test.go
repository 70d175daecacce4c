package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// What both eras have is tried in both.

// inBoth asks the same of a client of either era.
func inBoth(t *testing.T, s *Server, try func(t *testing.T, ask func(method, params string) string)) {
	for _, era := range []struct{ name, meta string }{{"sessions", ""}, {"stateless", servertest.ModernMeta}} {
		t.Run(era.name, func(t *testing.T) {
			c := newModern(t, s)
			if era.meta == "" {
				c = newClient(t, s)
			}
			try(t, func(method, params string) string {
				t.Helper()
				if params != "" && era.meta != "" {
					params += ","
				}
				return c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, era.meta))
			})
		})
	}
}

func TestCursors(t *testing.T) {
	store := servertest.NewTestStore(t)
	for range resourcesPage + 1 {
		servertest.Keep(t, store, observations.Local, "x", observations.Stats{})
	}
	s := newTestServer(t, func(o *Options) { o.Store = store })
	inBoth(t, s, func(t *testing.T, ask func(method, params string) string) {
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			expect.Contains(t, ask(method, ""), `"result"`)
			for _, cursor := range []string{`"x"`, `"eA=="`, `"c2F5"`, `"MTIz"`, `"` + base64.StdEncoding.EncodeToString(
				[]byte("x 0123456789ab"),
			) + `"`, `7`, `{}`, `"` + strings.Repeat("A", 5000) + `"`} {
				got := ask(method, `"cursor":`+cursor)
				expect.Contains(t, got, `"code":-32602`)
				if len(got) > 700 {
					t.Errorf("%s with the cursor %.20s is answered in %d bytes", method, cursor, len(got))
				}
			}
		}
		first := ask("resources/list", "")
		_, cursor, found := strings.Cut(first, `"nextCursor":"`)
		if cursor, _, _ = strings.Cut(cursor, `"`); !found {
			t.Fatalf("no second page: %.200s", first)
		}
		if got := ask("resources/list", `"cursor":"`+cursor+`"`); strings.Count(got, `"uri"`) != 1 ||
			strings.Contains(got, "nextCursor") {
			t.Errorf("the last page: %s", got)
		}
	})
}

// TestContentThatIsNotText has a tool write images, sound and other bytes.
func TestContentThatIsNotText(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	parts := tools.New(tools.Tool{Name: "parts", Title: "Parts", Description: "Gives parts."},
		func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
			for _, mime := range []string{"image/png", "audio/wav", "application/pdf"} {
				if _, err := out.Part(mime, "a part").Write(all); err != nil {
					return err
				}
			}
			return nil
		})
	store := servertest.NewTestStore(t)
	id := servertest.Keep(t, store, observations.Local, string(all), observations.Stats{Kind: "binary", Ext: "bin"})
	s := newTestServer(t, func(o *Options) { o.Tools, o.Store = append(o.Tools, parts), store })
	data := base64.StdEncoding.EncodeToString(all)
	inBoth(t, s, func(t *testing.T, ask func(method, params string) string) {
		expect.Contains(t, ask("tools/call", `"name":"parts"`),
			`{"type":"image","data":"`+data+`","mimeType":"image/png"}`, `{"type":"audio","data":"`+data+`","mimeType":"audio/wav"}`,
			`"mimeType":"application/pdf","blob":"`+data+`"`)
		expect.Contains(t, ask("resources/read", `"uri":"observation://`+string(id)+`"`), `"blob":"`+data+`"`)
		expect.Contains(t, ask("resources/list", ""), string(id))
		expect.Contains(t, ask("resources/templates/list", ""), "observation://{id}/receipt")
	})
	// Sound was not yet a kind of content at the beginning.
	old := &client{t: t, conn: s.Connect(t.Context())}
	old.ask(strings.Replace(servertest.Initialize, "2025-06-18", "2024-11-05", 1))
	expect.Contains(
		t, old.ask(servertest.ToolCall("1", "parts", "{}", "")), `"type":"image"`, `"mimeType":"audio/wav","blob":"`+data+`"`,
	)
}

// TestLogging asks for a level in the way of either era, and not at all.
func TestLogging(t *testing.T) {
	f, err := funnel.New(
		funnel.Options{
			Counter: tokens.New(tokens.O200k), NoStore: errors.New("open /home/ann/secret-place: permission denied"),
		},
	)
	expect.Must(t, err)
	s := newTestServer(t, func(o *Options) { o.Funnel = f })
	const big, told = `"name":"big","arguments":{"kb":100}`, `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"big: the output was not kept (`
	level := func(level string) string {
		return strings.Replace(
			servertest.ModernMeta, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+level+`",`, 1,
		)
	}
	modern := newModern(t, s)
	for meta, want := range map[string]bool{servertest.ModernMeta: false, level("error"): false, level("warning"): true, level("debug"): true} {
		got := modern.request("tools/call", `{`+big+`,`+meta+`}`)
		expect.Equal(t, strings.Contains(got, told), want, "%s: %s", meta, got)
		if strings.Contains(got, "secret-place") {
			t.Errorf("a path of the operator's is told: %s", got)
		}
	}
	modern.says("logging/setLevel", `{"level":"debug",`+servertest.ModernMeta+`}`, "-32601")
	c := newClient(t, s)
	if got := c.request("tools/call", `{`+big+`}`); strings.Contains(got, "notifications/message") {
		t.Errorf("nobody asked for %s", got)
	}
	c.says("logging/setLevel", `{"level":"loud"}`, "-32602")
	c.says("logging/setLevel", `{"level":"warning"}`, `"result":{}`)
	c.says("tools/call", `{`+big+`}`, told, `"level":"warning"`, `"logger":"observations"`)
	s.options.CallTimeout = 100 * time.Millisecond
	expect.Contains(
		t, c.ask(servertest.ToolCall("1", "sleep", `{"ms":60000}`, "")), `"level":"warning"`, `"isError":true`,
	)
	s.callLimit.SetLimits(0, 0)
	expect.Contains(
		t, c.ask(servertest.ToolCall("1", "say", `{"text":"x"}`, "")), `"data":"busy: 0 calls are running`, `"isError":true`,
	)
}

// TestProgressOfEachTool has each tool of the catalog tell how far it is, in the words of its work.
func TestProgressOfEachTool(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	for i := range 5000 {
		write(fmt.Sprint(i, ".txt"), nil)
	}
	lines := bytes.Repeat([]byte("a value of this row,7\n"), 400_000)
	write("lines.txt", lines)
	var random bytes.Buffer // so that an automaton has ever new states
	for r := rand.New(rand.NewPCG(1, 2)); random.Len() < 8<<20; {
		fmt.Fprintf(&random, "%064b%064b%064b%064b\n", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
	}
	write("words.txt", random.Bytes())
	write("rows.csv", append([]byte("text,n\n"), lines[:len(lines)/20]...))
	root, err := tree.Open(dir)
	expect.Must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	c := newClient(t, newTestServer(t, func(o *Options) {
		o.Tools = Catalog(Parts{JQ: jq.Options{InProcess: true}})
		o.Sources = func(who funnel.Session) source.Set {
			return source.Set{Roots: []*tree.Root{root}}
		}
	}))
	size := fmt.Sprint(`"total":`, len(lines))
	for _, k := range []struct{ tool, args, words, total string }{
		{"find", `{"show":"count"}`, "files walked", ""},
		// it tells four times a second
		{"search", `{"pattern":"[01]*1[01]{150}[c-z]","path":"words.txt"}`, "bytes read", fmt.Sprint(`"total":`, random.Len())},
		{"search", `{"pattern":"[01]*1[01]{150}[c-z]"}`, "files searched", ""},
		{"read", `{"path":"100*.txt"}`, "files walked", ""},
		{"read", `{"path":"lines.txt"}`, "bytes read", size},
		{"grep", `{"source":"lines.txt","pattern":"value","show":"count"}`, "bytes read", size},
		{"slice", `{"source":"lines.txt","lines":"399990-"}`, "bytes read", size},
		{"slice", `{"source":"rows.csv","records":"19990-"}`, "bytes read", `"total":`},
		{"jq", `{"source":"rows.csv","filter":"select(.n == 8)"}`, "bytes read", `"total":`},
	} {
		var notes, answers []string
		c.conn.Handle(t.Context(), []byte(servertest.ToolCall("1", k.tool, k.args, `,"_meta":{"progressToken":"t"}`)), func(m []byte, answer func()) error {
			if answer != nil {
				answers = append(answers, string(m))
				return nil
			}
			if notes = append(notes, string(m)); !strings.Contains(string(m), " so far") { // a heartbeat, of a busy machine
				c.conn.cancelID("n1") // that is all that was wanted
			}
			return nil
		})
		if !slices.ContainsFunc(
			notes, func(n string) bool { return strings.Contains(n, k.words) && strings.Contains(n, k.total) },
		) {
			t.Errorf("%s %s tells %q, want %q of %q; %.200q", k.tool, k.args, notes, k.words, k.total, answers)
		}
	}
}

// TestNoProgressToken has clients write null where they want no progress, as some encoders do.
func TestNoProgressToken(t *testing.T) {
	s := newTestServer(t)
	c := newClient(t, s)
	message := servertest.StatelessRequest("tools/call", `"name":"steps","arguments":{"n":3}`)
	for _, m := range []string{
		servertest.ToolCall("1", "steps", `{"n":3}`, `,"_meta":{"progressToken":null}`),
		strings.Replace(message, `"_meta":{`, `"_meta":{"progressToken":null,`, 1),
	} {
		if got := c.ask(m); !strings.Contains(got, `"text":"done"`) || strings.Contains(got, "\n") {
			t.Errorf("%s: %s", m, got)
		}
	}
}
