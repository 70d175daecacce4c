package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/server/viewer"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

const rendersApps = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// appServer returns a server that offers pages, the same one without, and the store and the root of both.
func appServer(t *testing.T) (with, without *Server, store *observations.Store, root string) {
	t.Helper()
	store, root = servertest.NewTestStore(t), t.TempDir()
	expect.Must(t, os.MkdirAll(filepath.Join(root, "ours"), 0o700))
	expect.Must(t, os.MkdirAll(filepath.Join(root, "theirs"), 0o700))
	expect.Must(t, os.WriteFile(filepath.Join(root, "theirs", "a.txt"), []byte("not granted"), 0o600))
	expect.Must(t, os.WriteFile(filepath.Join(root, "ours", "a.txt"), []byte("granted text"), 0o600))
	opened := expect.Value(tree.Open(root))(t)
	t.Cleanup(func() { expect.OK(t, opened.Close()) })
	sources := func(who funnel.Session) source.Set {
		return source.Set{Roots: []*tree.Root{opened}, Places: []source.NamedPlace{source.Observations(store, who.Owner)}}
	}
	f := expect.Value(funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k)}))(t)
	set := func(o *Options) {
		o.Funnel, o.Store, o.Sources, o.Tools = f, store, sources, append([]tools.Tool{fs.Find(), fs.Slice()}, o.Tools...)
	}
	pages := viewer.New(viewer.Options{
		Store: store, Records: records.InDir(t.TempDir()), Trace: trace.InDir(""), Funnel: f, Sources: sources,
		Counter: tokens.New(tokens.O200k),
	})
	t.Cleanup(pages.Close)
	return newTestServer(t, set, func(o *Options) { o.App = pages }), newTestServer(t, set), store, root
}

// asks returns what sends requests of a client with these capabilities, in one of the eras.
func asks(t *testing.T, s *Server, stateless bool, owner, capabilities string) func(method, params string) string {
	t.Helper()
	c := newModern(t, s)
	c.conn.account.Owner = owner
	meta := `,` + strings.Replace(servertest.ModernMeta, `Capabilities":{}`, `Capabilities":`+capabilities, 1)
	if !stateless {
		expect.Contains(t, c.ask(strings.Replace(servertest.Initialize, "{}", capabilities, 1)), `"result"`)
		meta = ""
	}
	return func(method, params string) string {
		t.Helper()
		return c.request(method, strings.TrimSuffix("{"+params+meta, ",")+"}")
	}
}

// Only a client that declares that it renders MCP Apps gets the document, its tool, and their names in the list.
func TestAppsAreForClientsThatRenderThem(t *testing.T) {
	with, without, store, _ := appServer(t)
	id := servertest.Keep(t, store, observations.Local, "the text <b>of it</b>", observations.Stats{Lines: 1})
	read := `"uri":"ui://funnel/observation"`
	view := `"name":"funnel_view","arguments":{"page":"obs/` + string(id) + `"}`
	requests := map[string]string{
		"tools/list": `"x":1`, "resources/list": `"x":1`, "resources/templates/list": `"x":1`, "prompts/list": `"x":1`,
		"resources/read": read, "tools/call": view,
	}
	for _, stateless := range []bool{false, true} {
		for _, capabilities := range []string{
			`{}`, `{"extensions":{}}`, `{"extensions":{"io.modelcontextprotocol/ui":null}}`,
			`{"extensions":{"io.modelcontextprotocol/ui":{}}}`,
			`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":"text/html;profile=mcp-app"}}}`,
			`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":[{},"text/html"]}}}`,
			`{"experimental":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`,
		} {
			ask := asks(t, with, stateless, observations.Local, capabilities)
			before := asks(t, without, stateless, observations.Local, capabilities)
			for method, params := range requests {
				got, want := ask(method, params), before(method, params)
				expect.Equal(t, got, want, "%s of a client with %s", method, capabilities)
			}
		}
		ask := asks(t, with, stateless, observations.Local, rendersApps)
		before := asks(t, without, stateless, observations.Local, rendersApps)
		for _, method := range []string{"resources/list", "resources/templates/list", "prompts/list"} {
			expect.Equal(t, ask(method, requests[method]), before(method, requests[method]), method)
		}
		var list struct {
			Result struct {
				Tools []struct {
					Name        string
					Annotations map[string]any
					Meta        struct {
						UI struct {
							ResourceURI string
							Visibility  []string
						}
						Flat string `json:"ui/resourceUri"`
					} `json:"_meta"`
				}
			}
		}
		expect.Must(t, json.Unmarshal([]byte(ask("tools/list", `"x":1`)), &list))
		for i, tool := range list.Result.Tools {
			ui, uri, to := tool.Meta.UI, "ui://funnel/observation", "model"
			switch {
			case i == len(list.Result.Tools)-1:
				uri, to = "", "app"
				expect.Equal(t, tool.Name, AppTool)
			case tool.Name == "slice": // its pages are not receipts
				uri, to = "", ""
			}
			if ui.ResourceURI != uri || tool.Meta.Flat != uri || strings.Join(ui.Visibility, " ") != to ||
				tool.Annotations["readOnlyHint"] == nil {
				t.Errorf("%+v", tool)
			}
		}
		if grown := len(ask("tools/list", `"x":1`)) - len(before("tools/list", `"x":1`)); grown < 100 {
			t.Errorf("the control: the list has grown by %d bytes", grown)
		}
		expect.Contains(t, ask("resources/read", read), `"mimeType":"text/html;profile=mcp-app"`, "<!doctype html>",
			`"prefersBorder":true`, `"connectDomains":[]`, "ui/initialize")
		expect.Contains(t, ask("tools/call", view), `"text":"funnel_view: OK"`, "the text &lt;b&gt;of it&lt;/b&gt;")
		for args, want := range map[string]string{
			`{}`: "takes one argument", `{"page":5}`: "takes one argument", `{"page":"obs","x":1}`: "takes one argument",
			`{"page":null}`: "takes one argument", `[]`: "takes one argument", `{"page":"no/such"}`: "There is no such page.",
			`{"page":"%zz"}`: "There is no such page.", `{"page":"obs/x/raw"}`: `"isError":true`, `{"page":""}`: "Overview",
		} {
			expect.Contains(t, ask("tools/call", `"name":"funnel_view","arguments":`+args), want)
		}
	}
}

// A page shows what belongs to its owner, and of files what the token of the request grants.
func TestPagesOfAppsAreOfTheirOwner(t *testing.T) {
	s, _, store, root := appServer(t)
	theirs := servertest.Keep(t, store, "bob", "the text of bob", observations.Stats{Lines: 1})
	ours := servertest.Keep(t, store, "ann", "the text of ann", observations.Stats{Lines: 1})
	page := func(target string) string { return `"name":"funnel_view","arguments":{"page":"` + target + `"}` }
	for _, stateless := range []bool{false, true} {
		ask := asks(t, s, stateless, "ann", rendersApps)
		expect.Contains(t, ask("tools/call", page("obs/"+string(ours))), "the text of ann")
		unknown := ask("tools/call", page("obs/0123456789ab"))
		foreign := ask("tools/call", page("obs/"+string(theirs)))
		expect.Equal(t, strings.ReplaceAll(foreign, string(theirs), "0123456789ab"), unknown)
		list := ask("tools/call", page("obs"))
		expect.Contains(t, list, string(ours))
		expect.Lacks(t, list, string(theirs))
	}
	c := newModern(t, s)
	meta := strings.Replace(servertest.ModernMeta, `Capabilities":{}`, `Capabilities":`+rendersApps, 1)
	show := func(name string, granted ...string) (got string) {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + page("file?name="+name) + `,` + meta + `}}`
		c.conn.Handle(WithRoots(t.Context(), granted), []byte(call), func(m []byte, _ func()) error {
			got = string(m)
			return nil
		})
		return got
	}
	expect.Contains(t, show("ours/a.txt"), "granted text")
	expect.Contains(t, show("theirs/a.txt"), "not granted") // the control
	expect.Contains(t, show("a.txt", filepath.Join(root, "ours")), "granted text")
	for _, name := range []string{"theirs/a.txt", filepath.Join(root, "theirs", "a.txt"), "../theirs/a.txt"} {
		expect.Lacks(t, show(name, filepath.Join(root, "ours")), "not granted")
	}
}
