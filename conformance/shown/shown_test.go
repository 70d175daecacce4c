package shown_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// house is the whole catalog over real files, a real store and a server: all places from which text is shown.
type house struct {
	t       testing.TB
	dir     string
	store   *observations.Store
	sources source.Set
	funnel  *funnel.Funnel
	tools   map[string]tools.Tool
	conn    *server.Conn
	told    []string // progress
}

// houseIn is a house whose workspace is empty.
func houseIn(t testing.TB, o funnel.Options) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), tools: map[string]tools.Tool{}}
	var err error
	h.store = expect.Value(observations.OpenStore(
		observations.Options{Dir: filepath.Join(t.TempDir(), "store"), MinFree: 1 << 20},
	))(t)
	t.Cleanup(func() { _ = h.store.Close() })
	root := expect.Value(tree.Open(h.dir))(t)
	t.Cleanup(func() { _ = root.Close() })
	o.Store, o.SavedTo = h.store, true
	h.funnel = expect.Value(funnel.New(o))(t)
	h.sources = source.Set{
		Roots: []*tree.Root{root}, Places: []source.NamedPlace{source.Observations(h.store, observations.Local)},
	}
	catalog := server.Catalog(server.Parts{})
	for _, x := range catalog {
		h.tools[x.Name] = x
	}
	s, err := server.New(server.Options{
		Funnel: h.funnel, Store: h.store, Tools: catalog, Mask: o.Mask, Sources: func(funnel.Session) source.Set { return h.sources },
	})
	expect.Must(t, err)
	h.conn = s.Connect(t.Context())
	h.ask(
		`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
	)
	return h
}

func (h *house) file(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	expect.Must(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.Must(h.t, os.WriteFile(path, []byte(text), 0o600))
}

// ask sends one message and gives the texts of all that came back, as a client reads them.
func (h *house) ask(message string) []string {
	h.t.Helper()
	var texts []string
	h.conn.Handle(h.t.Context(), []byte(message), func(m []byte, _ func()) error {
		var v any
		expect.OK(h.t, json.Unmarshal(m, &v), "%.200q", m)
		texts = append(texts, stringsIn(v)...)
		return nil
	})
	return texts
}

func stringsIn(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			all = append(all, stringsIn(e)...)
		}
	case map[string]any:
		for k, e := range v {
			all = append(append(all, k), stringsIn(e)...)
		}
	}
	return all
}

// call makes one call of the catalog.
func (h *house) call(name string, args map[string]any, limits ...funnel.Limits) funnel.Answer {
	h.t.Helper()
	return h.run(h.tools[name], args, limits...)
}

func (h *house) run(tool tools.Tool, args map[string]any, limits ...funnel.Limits) funnel.Answer {
	h.t.Helper()
	raw := expect.Value(json.Marshal(args))(h.t)
	if args == nil {
		raw = []byte("{}")
	}
	r := funnel.Request{
		Tool: tool, Args: raw, Sources: h.sources, Progress: func(_, _ int64, m string) { h.told = append(h.told, m) },
	}
	if len(limits) > 0 {
		r.Limits = limits[0]
	}
	ctx, stop := context.WithTimeout(h.t.Context(), 5*time.Minute)
	defer stop()
	return expect.Value(h.funnel.Call(ctx, r))(h.t, tool.Name)
}

// upstream is a tool of another server that writes a text, notes another and ends as it is told.
func upstream(text, note string, failure error) tools.Tool {
	return tools.New(tools.Tool{Name: "fetch", Title: "Fetch", Description: "Fetches.", Toolset: "upstream"}, func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
		out.Progress(1, 2, note)
		if note != "" {
			out.Note(note)
		}
		if _, err := out.Write([]byte(text)); err != nil {
			return err
		}
		return failure
	})
}

// shownOf is an answer as a client that joins its blocks shows it.
func shownOf(a funnel.Answer) string {
	var all []string
	for _, b := range a.Blocks {
		all = append(all, b.Name, b.Text)
	}
	return strings.Join(all, "\n")
}

// everywhere is all that is shown of a text that holds what others wrote, by where: each tool of the catalog over a
// small and a large file of it, another server's output, errors, notes, resources and prompts. name is a file's name
// that holds it too.
func (h *house) everywhere(text, name string) map[string]string {
	h.t.Helper()
	shown := map[string]string{}
	add := func(where string, a funnel.Answer) { shown[where] = shownOf(a) }
	filler := strings.Repeat("a line of filler that is of no interest to anybody\n", 400)
	quoted, _ := json.Marshal(text)
	h.file("small.txt", "first\n"+text+"\nlast\n")
	h.file("large.txt", text+"\n"+filler+text+"\n"+filler+text+"\n")
	h.file("long.txt", text+" "+strings.Repeat("word ", 60_000)+text+"\n")
	h.file("one.json", `{"a":[`+string(quoted)+`,1],"b":{"c":`+string(quoted)+`}}`)
	h.file("many.ndjson", strings.Repeat(`{"k":`+string(quoted)+`,"n":1}`+"\n", 90))
	if name != "" {
		h.file(filepath.Join("names", name), "first\nlast\n")
	}
	for _, f := range []string{"small.txt", "large.txt", "long.txt", "one.json", "many.ndjson"} {
		add("read "+f, h.call("read", map[string]any{"path": f}))
		add("grep "+f, h.call("grep", map[string]any{"source": f, "pattern": "."}, funnel.Limits{PageTokens: 1000}))
		add("search "+f, h.call("search", map[string]any{"path": f, "pattern": ".", "context": 1}))
		add("slice lines "+f, h.call("slice", map[string]any{"source": f, "lines": "1-9"}))
		add("slice chars "+f, h.call("slice", map[string]any{"source": f, "chars": "0-"}, funnel.Limits{PageTokens: 400}))
	}
	add("read several", h.call("read", map[string]any{"path": "*.txt"}))
	add("jq", h.call("jq", map[string]any{"source": "one.json", "filter": ".a[0], .b"}))
	add("jq raw", h.call("jq", map[string]any{"source": "one.json", "filter": ".a[0]", "raw": true}))
	add("jq lines", h.call("jq", map[string]any{"source": "many.ndjson", "filter": "."}, funnel.Limits{PageTokens: 500}))
	add("slice records", h.call("slice", map[string]any{"source": "many.ndjson", "records": "0-3"}))
	add("slice at", h.call("slice", map[string]any{"source": "one.json", "at": "/b/c"}))
	add("find", h.call("find", map[string]any{"glob": "**"}))
	add("find stat", h.call("find", map[string]any{"path": "names", "show": "stat"}))
	add("search names", h.call("search", map[string]any{"path": "names", "pattern": "first"}))
	saved := h.call("jq", map[string]any{"source": "many.ndjson", "filter": ".", "save": true})
	add("jq saved", saved)
	add("read observation", h.call("read", map[string]any{"path": "obs:" + saved.Receipts[0].ObservationID}))
	add("find observations", h.call("find", map[string]any{"path": "obs:"}))
	// What the caller itself sent comes back in errors.
	add("unknown source", h.call("grep", map[string]any{"source": text, "pattern": "x"}))
	add("unknown argument", h.call("grep", map[string]any{"source": "small.txt", text: "x"}))
	add("wrong pattern", h.call("grep", map[string]any{"source": "small.txt", "pattern": "(" + text}))
	add("wrong filter", h.call("jq", map[string]any{"source": "one.json", "filter": "." + text + " ("}))
	add("error of jq", h.call("jq", map[string]any{"source": "one.json", "filter": "error(.a[0])"}))
	// Another server's tool.
	add("output", h.run(upstream("first\n"+text+"\nlast\n", "", nil), nil))
	add("large output", h.run(upstream(text+"\n"+filler+text+"\n", "", nil), nil))
	add("output with a note", h.run(upstream("first\n"+text+"\n", "seen: "+text, nil), nil))
	add("large with a note", h.run(upstream(filler+text+"\n"+filler, "seen: "+text, nil), nil))
	add("error", h.run(upstream("", "", errors.New("failed:\n"+text)), nil))
	add("output and error", h.run(upstream("first\n"+text+"\n", "", errors.New(text)), nil))
	shown["progress"] = strings.Join(h.told, "\n")
	h.told = nil
	// What a client reads beside calls.
	list := expect.Value(h.store.List(observations.Local, false))(h.t)
	for i, o := range list {
		if i > 3 {
			break
		}
		for _, end := range []string{"", "/receipt"} {
			m, _ := json.Marshal(
				map[string]any{
					"jsonrpc": "2.0", "id": 1, "method": "resources/read",
					"params": map[string]any{"uri": "observation://" + string(o.ID) + end},
				},
			)
			shown["resource"+end] += "\n" + strings.Join(h.ask(string(m)), "\n")
		}
	}
	shown["resources"] = strings.Join(h.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`), "\n")
	m, _ := json.Marshal(
		map[string]any{
			"jsonrpc": "2.0", "id": 1, "method": "prompts/get",
			"params": map[string]any{"name": "director", "arguments": map[string]any{"task": text}},
		},
	)
	shown["prompt"] = strings.Join(h.ask(string(m)), "\n")
	m, _ = json.Marshal(
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": map[string]any{"name": text}},
	)
	shown["unknown prompt"] = strings.Join(h.ask(string(m)), "\n")
	m, _ = json.Marshal(
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": map[string]any{"uri": text}},
	)
	shown["unknown resource"] = strings.Join(h.ask(string(m)), "\n")
	return shown
}

// maskOf is a masker, for options.
func maskOf() *secrets.Masker { return secrets.New() }
