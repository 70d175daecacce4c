package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

func newTestServer(t testing.TB, change ...func(*Options)) *Server {
	t.Helper()
	s, err := makeTestServer(change...)
	expect.Must(t, err)
	return s
}

func makeTestServer(change ...func(*Options)) (*Server, error) {
	f, err := funnel.New(funnel.Options{Counter: tokens.New(tokens.O200k)})
	if err != nil {
		return nil, err
	}
	o := Options{
		Funnel: f, Tools: servertest.TestTools(), Version: "test",
		Sources: func(who funnel.Session) source.Set { return source.Set{} },
	}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

// client drives a connection without a transport and keeps what it was sent, in order.
type client struct {
	t    testing.TB
	conn *Conn
	mu   sync.Mutex
	got  []string
}

func newClient(t testing.TB, s *Server) *client {
	c := &client{t: t, conn: s.Connect(t.Context())}
	if got := c.ask(servertest.Initialize); !strings.Contains(got, `"protocolVersion":"2025-06-18"`) {
		t.Fatalf("initialize: %s", got)
	}
	return c
}

func (c *client) send(message []byte, _ func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, string(bytes.TrimSpace(message)))
	return nil
}

// ask handles one message and returns what was sent for it, a message a line.
func (c *client) ask(message string) string {
	c.t.Helper()
	var got []string
	c.conn.Handle(c.t.Context(), []byte(message), func(m []byte, _ func()) error {
		if !json.Valid(m) || bytes.Count(m, []byte("\n")) != 1 || m[len(m)-1] != '\n' {
			c.t.Errorf("not a message on a line: %q", m)
		}
		got = append(got, string(bytes.TrimSpace(m)))
		return nil
	})
	return strings.Join(got, "\n")
}

// request returns what was sent for a request with these params, of id 1.
func (c *client) request(method, params string) string {
	c.t.Helper()
	return c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
}

// says checks that what is sent for a request contains these texts.
func (c *client) says(method, params string, want ...string) {
	c.t.Helper()
	expect.Contains(c.t, c.request(method, params), want...)
}

func (c *client) call(tool, args string) servertest.Answer {
	c.t.Helper()
	return servertest.Read(c.t, c.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)))
}

func TestNewRefuses(t *testing.T) {
	f, err := funnel.New(funnel.Options{Counter: tokens.New(tokens.O200k)})
	expect.Must(t, err)
	sources := func(funnel.Session) source.Set { return source.Set{} }
	good := servertest.TestTools()[0]
	without := func(change func(*tools.Tool)) []tools.Tool {
		bad := good
		change(&bad)
		return []tools.Tool{bad}
	}
	for name, o := range map[string]Options{
		"funnel":      {Sources: sources},
		"sources":     {Funnel: f},
		"twice":       {Funnel: f, Sources: sources, Tools: []tools.Tool{good, good}},
		"title":       {Funnel: f, Sources: sources, Tools: without(func(t *tools.Tool) { t.Title = "" })},
		"description": {Funnel: f, Sources: sources, Tools: without(func(t *tools.Tool) { t.Description = "" })},
		"schema": {Funnel: f, Sources: sources, Tools: without(
			func(t *tools.Tool) { t.Schema = json.RawMessage(`{"type":"array"}`) },
		)},
		"run": {Funnel: f, Sources: sources, Tools: without(func(t *tools.Tool) { t.Run = nil })},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The instructions name the roots if there are several, unless the client's own roots narrow them.
func TestInstructionsNameSeveralRoots(t *testing.T) {
	open := func(name string) *tree.Root {
		dir := filepath.Join(t.TempDir(), name)
		expect.Must(t, os.Mkdir(dir, 0o700))
		r, err := tree.Open(dir)
		expect.Must(t, err)
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	roots := []*tree.Root{open("src"), open("docs")}
	for _, c := range []struct {
		roots        []*tree.Root
		capabilities string
		named        bool
	}{{roots, "{}", true}, {roots[:1], "{}", false}, {roots, `{"roots":{}}`, false}} {
		s := newTestServer(t, func(o *Options) {
			o.Sources = func(funnel.Session) source.Set { return source.Set{Roots: c.roots} }
		})
		client := &client{t: t, conn: s.Connect(t.Context())}
		got := client.ask(strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":`+c.capabilities, 1))
		if strings.Contains(got, `\nRoots: src, docs. A path`) != c.named {
			t.Errorf("%d roots, %s: %s", len(c.roots), c.capabilities, got)
		}
	}
}

func TestInitializeNegotiates(t *testing.T) {
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25",
	} {
		s := newTestServer(t)
		c := &client{t: t, conn: s.Connect(t.Context())}
		got := c.ask(strings.Replace(servertest.Initialize, "2025-06-18", asked, 1))
		expect.Contains(
			t, got, `"id":"init"`, `"protocolVersion":"`+want+`"`, `"instructions":"`, `"name":"mcp-funnel"`, `"version":"test"`,
		)
		if got := c.ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); got != "" {
			t.Errorf("a notification was answered: %s", got)
		}
	}
}

func TestBeforeInitialize(t *testing.T) {
	s := newTestServer(t)
	c := &client{t: t, conn: s.Connect(t.Context())}
	c.says("ping", `{}`, `"id":1`, `"result":{}`)
	for _, method := range []string{"tools/list", "tools/call", "resources/list", "logging/setLevel", "no/such"} {
		got := servertest.Read(t, c.ask(`{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{"name":"say"}}`))
		if got.Error == nil || got.Error.Code != -32600 || !strings.Contains(got.Error.Message, method+" before initialize") {
			t.Errorf("%s: %+v", method, got.Error)
		}
	}
}

func TestStatelessEra(t *testing.T) {
	s := newTestServer(t)
	c := &client{t: t, conn: s.Connect(t.Context())}
	ask := func(method, params string) string {
		return c.ask(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + servertest.ModernMeta + `}}`)
	}
	expect.Contains(
		t, ask("server/discover", ""), `"supportedVersions":["2026-07-28"`, `"resultType":"complete"`, `"ttlMs"`,
	)
	expect.Contains(t, ask("tools/list", ""), `"name":"say"`, `"resultType":"complete"`)
	expect.Contains(
		t, ask("tools/call", `"name":"say","arguments":{"text":"hi"},`), `"text":"hi"`, `"resultType":"complete"`,
		`io.modelcontextprotocol/serverInfo`,
	)
	expect.Contains(t, ask("tools/call", `"name":"panic",`), `"isError":true`, `"resultType":"complete"`)
	expect.Contains(t, ask("ping", ""), `-32601`, "removed")
	expect.Contains(t, ask("initialize", ""), `-32601`, "removed")
	expect.Contains(t, ask("resources/read", `"uri":"observation://0123456789ab",`), `-32602`)
	expect.Contains(
		t, ask("subscriptions/listen", `"notifications":{},`), "notifications/subscriptions/acknowledged",
		`"io.modelcontextprotocol/subscriptionId":7`,
	)
	c.says("tools/list",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}`,
		`-32022`)
	c.says("tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, `-32602`,
		"clientCapabilities")
	// It leaves no trace: a request without _meta is still before initialize.
	c.says("tools/list", `{}`, "before initialize")
}

func TestToolsList(t *testing.T) {
	c := newClient(t, newTestServer(t))
	var got struct {
		Result struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              map[string]any
				Annotations              map[string]any
			}
			NextCursor string
		}
	}
	expect.Must(t, json.Unmarshal([]byte(c.request("tools/list", `{}`)), &got))
	want := servertest.TestTools()
	if len(got.Result.Tools) != len(want) || got.Result.NextCursor != "" {
		t.Fatalf("%d tools, want %d; cursor %q", len(got.Result.Tools), len(want), got.Result.NextCursor)
	}
	for i, tool := range got.Result.Tools {
		if tool.Name != want[i].Name || tool.Title != want[i].Title || tool.Description != want[i].Description {
			t.Errorf("tool %d: %+v, want %s", i, tool, want[i].Name)
		}
		a := tool.Annotations
		if a["readOnlyHint"] != (want[i].Effect == tools.ReadOnly) ||
			a["destructiveHint"] != (want[i].Effect == tools.Destructive) ||
			a["openWorldHint"] != want[i].OpenWorld {
			t.Errorf("%s: annotations %v", tool.Name, a)
		}
		expect.Equal(t, tool.InputSchema["type"], "object", "%s: schema %v", tool.Name, tool.InputSchema)
	}
	c.says("tools/list", `{"cursor":"c2F5"}`, "-32602", "unknown cursor")
}

func TestToolsCall(t *testing.T) {
	c := newClient(t, newTestServer(t))
	got := c.call("say", `{"text":"<a> & b"}`)
	if got.Text() != "<a> & b" || got.Result.IsError || got.Result.Meta[receiptMetaKey] == nil {
		t.Errorf("%+v", got)
	}
	var receipt map[string]any
	if err := json.Unmarshal(got.Result.Meta[receiptMetaKey], &receipt); err != nil || receipt["complete"] != true {
		t.Errorf("%v, receipt %v", err, receipt)
	}
	c.says("tools/call", `{"name":"say","arguments":{"text":"<a>"}}`, `"text":"<a>"`) // it is not escaped for HTML
	// Arguments reach the tool as they were sent: no float in between.
	if got := c.call("args", `{"n":9007199254740993.0}`); !strings.Contains(got.Text(), "9007199254740993.0") {
		t.Errorf("args: %+v", got)
	}
	for _, args := range []string{"null", "{}"} {
		expect.Equal(t, c.call("args", args).Text(), "{}", "arguments %s reached the tool", args)
	}
	c.says("tools/call", `{"name":"args"}`, `"text":"{}"`)
	if got := c.call("fail", "{}"); !got.Result.IsError || !strings.Contains(got.Text(), "as it always does") {
		t.Errorf("fail: %+v", got)
	}
	if got := c.call("panic", "{}"); !got.Result.IsError || strings.Contains(got.Text(), "goroutine") {
		t.Errorf("panic: %+v", got)
	}
	if got := c.call("say", "{}"); !got.Result.IsError || !strings.Contains(got.Text(), "text") {
		t.Errorf("missing argument: %+v", got)
	}
}

func TestRequestErrors(t *testing.T) {
	c := newClient(t, newTestServer(t))
	long := strings.Repeat("n", 1<<20)
	type row struct {
		Name, Method, Params string
		Code                 int
		Want                 []string
	}
	for _, test := range append(expect.Table[row](t, "testdata/request_errors.tsv"),
		row{"unknown tool, long", "tools/call", `{"name":"` + long[:200<<10] + `"}`, -32602, []string{"tools: say"}},
		row{"unknown method, long", long, `{}`, -32601, []string{"unknown method"}},
		row{"too much", "prompts/get", `{"name":"director","arguments":{"task":"` + long +
			`"}}`, -32602, []string{"params of 1048"}},
	) {
		t.Run(test.Name, func(t *testing.T) {
			message := c.ask(`{"jsonrpc":"2.0","id":"a","method":"` + test.Method + `","params":` + test.Params + `}`)
			got := servertest.Read(t, message)
			if got.Error == nil || got.Error.Code != test.Code || string(got.ID) != `"a"` {
				t.Fatalf("want code %d for id a: %.500s", test.Code, message)
			}
			expect.Contains(t, got.Error.Message, test.Want...)
			if len(message) > 1000 {
				t.Errorf("the error is %d bytes long", len(message))
			}
		})
	}
}

// TestFaultsShowHiddenCharacters once, and not as they are.
func TestFaultsShowHiddenCharacters(t *testing.T) {
	c := newClient(t, newTestServer(t))
	const sent, want = `a\u202eb\u001b[31mc\u0085\u200bd`, `a\u{202e}b\x1b[31mc\u{85}\u{200b}d`
	for name, ask := range map[string][2]string{
		"log level":       {"logging/setLevel", `{"level":"@"}`},
		"completion type": {"completion/complete", `{"ref":{"type":"@"},"argument":{"name":"a","value":""}}`},
		"completion":      {"completion/complete", `{"ref":{"type":"ref/prompt","name":"@"},"argument":{"name":"a","value":""}}`},
		"template":        {"completion/complete", `{"ref":{"type":"ref/resource","uri":"@"},"argument":{"name":"a","value":""}}`},
		"argument":        {"completion/complete", `{"ref":{"type":"ref/prompt","name":"director"},"argument":{"name":"@","value":""}}`},
		"prompt":          {"prompts/get", `{"name":"@"}`},
		"tool":            {"tools/call", `{"name":"@"}`},
		"resource":        {"resources/read", `{"uri":"@"}`},
		"observation":     {"resources/read", `{"uri":"observation://@"}`},
		"method":          {"@", `{}`},
		"key twice":       {"ping", `{"@":1,"@":2}`},
	} {
		message := c.ask(strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"`+ask[0]+`","params":`+ask[1]+`}`, "@", sent))
		got := servertest.Read(t, message)
		if got.Error == nil || !strings.Contains(got.Error.Message, want) {
			t.Errorf("%s: want %s in %s", name, want, message)
		}
		if i := strings.IndexFunc(message, func(r rune) bool { return r < 0x20 || r > 0x7e }); i >= 0 {
			t.Errorf("%s: %q holds a hidden character at %d", name, message, i)
		}
	}
	// A line break makes no second line, a quote no end.
	got := servertest.Read(t, c.request("tools/call", `{"name":"a\"\nb"}`))
	expect.Contains(t, got.Error.Message, `unknown tool "a\"\nb"; tools`)
}

func TestPromptsAndLevels(t *testing.T) {
	c := newClient(t, newTestServer(t))
	c.says("prompts/list", `{}`, `"name":"director"`, `"name":"investigate-output"`, `"required":true`)
	c.says("prompts/get", `{"name":"director","arguments":{"task":"count the hits"}}`, `"role":"user"`,
		"The task: count the hits", "LARGE OUTPUT DETECTED")
	c.says("resources/templates/list", `{}`, `"uriTemplate":"observation://{id}"`,
		`"uriTemplate":"observation://{id}/receipt"`)
	c.says("resources/list", `{}`, `"resources":[]`)
	c.says("completion/complete",
		`{"ref":{"type":"ref/prompt","name":"director"},"argument":{"name":"task","value":"x"}}`, `"values":[]`)
	c.says("logging/setLevel", `{"level":"debug"}`, `"result":{}`)
	expect.Equal(t, *c.conn.logLevel.Load(), "debug", "level")
}

// TestPanicOfTheLayer has the layer itself break, below the funnel's own containment.
func TestPanicOfTheLayer(t *testing.T) {
	s := newTestServer(t)
	s.run = func(context.Context, funnel.Request) (funnel.Answer, error) { panic("layer") }
	c := newClient(t, s)
	c.says("tools/call", `{"name":"say"}`, `"method":"notifications/message"`, `"level":"error"`, `"isError":true`,
		"internal error")
	c.request("logging/setLevel", `{"level":"emergency"}`)
	if got := c.request("tools/call", `{"name":"say"}`); strings.Contains(got, "notifications/message") {
		t.Errorf("a log message below the level was sent: %s", got)
	}
	c.says("ping", `{}`, `"result":{}`)
}

func TestSeveralReceiptsAndParts(t *testing.T) {
	s := newTestServer(t)
	s.run = func(context.Context, funnel.Request) (funnel.Answer, error) {
		return funnel.Answer{
			Blocks: []funnel.Block{
				{Text: "a"}, {MIME: "image/png", Data: []byte{1, 2, 3}}, {MIME: "application/pdf", Name: "x.pdf", Data: []byte{4}},
			},
			Receipts: []funnel.Receipt{{ObservationID: "one"}, {ObservationID: "two"}},
		}, nil
	}
	got := newClient(t, s).ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say"}}`)
	expect.Contains(t, got, `"funnel/receipt":[{`, `"observation_id":"two"`, `"type":"image"`, `"data":"AQID"`, `"mimeType":"image/png"`,
		`"type":"resource"`, `"blob":"BA=="`, `"uri":"attachment:x.pdf"`)
	if strings.Contains(got, "structuredContent") {
		t.Errorf("structured content: %s", got)
	}
}
