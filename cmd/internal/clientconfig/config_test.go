package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const self = "/opt/tools/mcp-funnel"

// configuration is a file as a user may have it. In its text, KEY is the key of the servers, and ENTRY an entry.
type configuration struct {
	name, text string
	comments   bool // it is not for clients that read strict JSON
	servers    bool // it has others, so that cutting ours out leaves the very bytes
}

var configurations = []configuration{
	{name: "empty", text: ""},
	{name: "blank", text: "\n"},
	{name: "object", text: "{}"},
	{name: "object, end of line", text: "{}\n"},
	{name: "object with a space", text: "{ }\n"},
	{name: "object of two lines", text: "{\n}\n"},
	{name: "one line", text: `{"theme":"dark","n":1.50}`},
	{name: "one line, servers", text: `{"KEY": {"other": ENTRY}, "theme": "dark"}`, servers: true},
	{name: "one line, no servers", text: `{"KEY": {}, "theme": "dark"}` + "\n"},
	{name: "two spaces", text: "{\n  \"z\": [1,2],\n  \"KEY\": {\n    \"other\": ENTRY\n  },\n  \"a\": 1e3\n}\n", servers: true},
	{name: "four spaces", text: "{\n    \"KEY\": {\n        \"other\": ENTRY,\n        \"b\": ENTRY\n    }\n}", servers: true},
	{name: "tabs", text: "{\n\t\"KEY\": {\n\t\t\"other\": ENTRY\n\t},\n\t\"u\": \"\\u00e9\"\n}\n", servers: true},
	{name: "no key", text: "{\n\t\"u\": {\n\t\t\"v\": []\n\t}\n}\n"},
	{name: "empty key", text: "{\n  \"KEY\": {},\n  \"x\": true\n}\n"},
	{name: "null", text: "{\n  \"theme\": null,\n  \"KEY\": null\n}\n"},
	{name: "empty key of two lines", text: "{\n  \"KEY\": {\n  },\n  \"x\": true\n}\n"},
	{name: "odd layout", text: "{ \"a\" :1 ,\n\"KEY\"  : { \"other\":ENTRY\n ,\"b\" : ENTRY }\n, \"c\":null }", servers: true},
	{name: "url", text: "{\n  \"KEY\": {\n    \"far\": {\"url\": \"https://mcp.example/\"}\n  }\n}\n", servers: true},
	{name: "comments", comments: true, servers: true, text: "// mine\n{\n  // servers\n  \"KEY\": {\n    // one\n" +
		"    \"other\": ENTRY, // good\n    /* two */ \"b\": ENTRY // last\n    // end\n  }, /* x */\n  \"a\": 1 // a\n}\n// over"},
	{name: "trailing commas", comments: true, servers: true,
		text: "{\n  \"KEY\": {\n    \"other\": ENTRY,\n  },\n  \"a\": [1,],\n}\n"},
	{name: "only comments", comments: true, text: "{\n  // \"KEY\": {}\n}\n"},
	{name: "comment in the key", comments: true, text: "{\n  \"KEY\": { // none yet\n  }\n}\n"},
}

// entries are forms of an entry in JSON, for a client with a string and arguments, and for one with an array.
var (
	entries = []string{
		`{"command": "npx", "args": ["-y", "pkg"], "env": {"A": "b"}}`, `{"command":"npx","args":[]}`,
		`{ "env": {}, "command": "n\u0070x" }`, "{\n  \"args\": [\n    \"-y\",\n    \"pkg\"\n  ],\n  \"command\": \"npx\"\n}",
	}
	arrays = []string{`{"type": "local", "command": ["npx", "-y", "pkg"]}`, "{\n  \"command\": [\n    \"npx\"\n  ]\n}"}
)

// texts are the configurations of a client, by name.
func texts(c *Client) map[string]configuration {
	all := map[string]configuration{}
	forms := entries
	if c.joined {
		forms = arrays
	}
	for _, k := range configurations {
		if k.comments && c.strict {
			continue
		}
		for i, entry := range forms {
			k := k
			k.text = strings.ReplaceAll(strings.ReplaceAll(k.text, "KEY", strings.Join(c.keys, ".")), "ENTRY", entry)
			all[fmt.Sprintf("%s, entry %d", k.name, i)] = k
		}
	}
	if c.toml {
		all = map[string]configuration{}
		for name, text := range map[string]string{
			"empty": "", "settings": "model = \"x\" # good\n\n[profiles.a]\nb = [1, 2]\n", "no end of line": "a = 1",
			"servers": "# mine\n[mcp_servers.other]\ncommand = \"npx\" # run\nargs = [\"-y\", 'pkg']\nenv = { A = \"b\" }\n\n" +
				"# next\n[mcp_servers.b]\n  args = [\n    \"x\", # one\n  ]\n  command = 'n\\px'\n\n[mcp_servers.b.env]\nA = \"[x]\"\n",
			"no arguments": "[mcp_servers.\"other\"]\ncommand = \"npx\"\n", "url": "[mcp_servers.far]\nurl = \"https://x\"\n",
			"comments at the end": "[mcp_servers.other]\ncommand = \"npx\"\nargs = []\n\n# end\n",
		} {
			all[name] = configuration{text: text}
		}
	}
	for name, k := range maps.Clone(all) {
		crlf, mark := k, k
		crlf.text = strings.ReplaceAll(k.text, "\n", "\r\n")
		mark.text = "\ufeff" + k.text
		all[name+", CRLF"], all[name+", mark"] = crlf, mark
	}
	return all
}

// empties matches what an entry takes the place of.
var empties = regexp.MustCompile(`(?: (})|null(\r?\n}))`)

// holds reports whether a text has all bytes of another, in order.
func holds(text, of []byte) bool {
	for _, b := range of {
		i := bytes.IndexByte(text, b)
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}

// Whatever the file looks like: nothing but ours is added, a second time changes nothing, and removing gives back the
// bytes that were there. The same holds for wrapping.
func TestChanges(t *testing.T) {
	add := Change{Self: self, Args: []string{"--root", "/home/x y/ö"}, Server: true}
	moved := Change{Self: "/new/mcp-funnel", Server: true}
	remove := Change{Self: self, Server: true, Remove: true}
	wrap, unwrap := Change{Self: self, Wrap: []string{"all"}}, Change{Self: self, Wrap: []string{"all"}, Remove: true}
	for i := range clients {
		c := &clients[i]
		for name, k := range texts(c) {
			t.Run(c.Name+"/"+name, func(t *testing.T) {
				original := []byte(k.text)
				plan := func(now, backup []byte, ch Change) []byte {
					t.Helper()
					p := expect.Value(c.Plan(now, backup, ch))(t)
					return p.After
				}
				same := func(what string, got, want []byte) {
					t.Helper()
					expect.Equal(t, string(got), string(want), what)
					expect.Equal(t, got == nil, want == nil, what)
				}
				installed := plan(original, nil, add)
				edited := original // by a client of strict JSON, without a byte order mark
				if c.strict {
					edited = bytes.TrimPrefix(original, bom)
				}
				if !holds(installed, empties.ReplaceAll(edited, []byte("$1$2"))) {
					t.Errorf("something is gone:\n%s\n%s", original, installed)
				}
				crlf, lf := bytes.Count(installed, []byte("\r\n")), bytes.Count(installed, []byte("\n"))
				if strings.Contains(k.text, "\r\n") && crlf != lf {
					t.Errorf("mixed ends of lines: %q", installed)
				}
				same("twice", plan(installed, original, add), installed)
				same("removed", plan(installed, original, remove), original)
				same("changed and removed", plan(plan(installed, original, moved), original, remove), original)
				cut := plan(installed, []byte("x = y"), remove)
				if k.servers {
					same("cut out", cut, edited)
				}
				same("cut out twice", plan(cut, nil, remove), cut)

				wrapped := plan(original, nil, wrap)
				d := expect.Value(c.parse(original))(t)
				w := expect.Value(c.parse(wrapped))(t)
				for name, argv := range d.argv() {
					want := []string{self, "wrap"}
					if below(d.value, append(slices.Clone(d.keys), name, "env", "A")...) != nil {
						want = append(want, "--env", "A")
					}
					want = append(append(want, "--"), argv...)
					if len(argv) > 0 && !slices.Equal(w.argv()[name], want) {
						t.Errorf("%s: %q", name, w.argv()[name])
					}
				}
				same("wrapped twice", plan(wrapped, original, wrap), wrapped)
				same("unwrapped", plan(wrapped, original, unwrap), original)
				both := plan(wrapped, original, add)
				same("wrapped after", plan(installed, original, wrap), both)
				same("one of two removed", plan(both, original, remove), wrapped)
				same("the other removed", plan(both, original, unwrap), installed)
				u := expect.Value(c.parse(plan(both, []byte("x = y"), unwrap)))(t)
				for name, argv := range d.argv() {
					expect.EqualList(t, u.argv()[name], argv, "unwrapped by itself, %s", name)
				}
			})
		}
		missing := expect.Value(c.Plan(nil, nil, add))(t)
		if p, err := c.Plan(missing.After, nil, remove); err != nil || p.After != nil || !p.Changed {
			t.Errorf("%s: a file that was missing: %v, %q", c.Name, err, p.After)
		}
	}
}

// Servers of a directory, in Claude Code's local scope, are wrapped there; elsewhere an error or a note names it.
func TestLocalScope(t *testing.T) {
	c := ByName("claude-code")
	text := []byte(`{"mcpServers":{"b":{"command":"c"}},` +
		`"projects":{"/p":{"mcpServers":{"z":{"command":"q","args":[]}}},"/q":{}}}`)
	_, err := c.Plan(text, nil, Change{Self: self, Wrap: []string{"z"}})
	expect.Fails(t, err, "local scope of /p:")
	p, err := c.Plan(text, nil, Change{Self: self, Wrap: []string{"all"}})
	if err != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "local scope of /p;") {
		t.Errorf("%v, %q", err, p.Notes)
	}
	p, err = c.Local("/p").Plan(text, nil, Change{Self: self, Wrap: []string{"all"}})
	want := `"z":{"command":"` + self + `","args":["wrap", "--", "q"]}}}`
	expect.OK(t, err, "%q", p.Notes)
	expect.Has(t, string(p.After), want, "%q", p.Notes)
	back, err := c.Local("/p").Plan(p.After, text, Change{Self: self, Wrap: []string{"z"}, Remove: true})
	expect.OK(t, err)
	expect.Equal(t, string(back.After), string(text))
	p, err = c.Local("/new").Plan(text, nil, Change{Self: self, Server: true})
	expect.OK(t, err)
	expect.Contains(t, string(p.After), `"/new"`)
	if ByName("cursor").Local("/p") != nil {
		t.Error("cursor has a local scope")
	}
}

// The entry of each client is what it documents.
func TestEntries(t *testing.T) {
	want := map[string]string{
		"claude-desktop": `{"mcpServers":{"funnel":{"command":"/opt/tools/mcp-funnel","args":["--root","/p"]}}}`,
		"claude-code":    `{"mcpServers":{"funnel":{"type":"stdio","command":"/opt/tools/mcp-funnel","args":["--root","/p"]}}}`,
		"cursor":         `{"mcpServers":{"funnel":{"command":"/opt/tools/mcp-funnel","args":["--root","/p"]}}}`,
		"vscode":         `{"servers":{"funnel":{"type":"stdio","command":"/opt/tools/mcp-funnel","args":["--root","/p"]}}}`,
		"windsurf":       `{"mcpServers":{"funnel":{"command":"/opt/tools/mcp-funnel","args":["--root","/p"]}}}`,
		"zed":            `{"context_servers":{"funnel":{"source":"custom","command":"/opt/tools/mcp-funnel","args":["--root","/p"]}}}`,
		"codex":          `[mcp_servers.funnel]command="/opt/tools/mcp-funnel"args=["--root","/p"]`,
		"gemini":         `{"mcpServers":{"funnel":{"command":"/opt/tools/mcp-funnel","args":["--root","/p"]}}}`,
		"opencode":       `{"mcp":{"funnel":{"type":"local","command":["/opt/tools/mcp-funnel","--root","/p"]}}}`,
	}
	for name, entry := range want {
		got, err := ByName(name).Block(Change{Self: self, Args: []string{"--root", "/p"}, Server: true})
		if got = strings.Join(strings.Fields(got), ""); got != entry || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	expect.Equal(t, len(want), len(clients), "clients")
}

// What only one client has.
func TestParticular(t *testing.T) {
	add, wrap := Change{Self: self, Server: true}, Change{Self: self, Wrap: []string{"all"}}
	for _, k := range []struct {
		client, before string
		change         Change
		want, note     string
	}{
		{"opencode", `{"mcp":{"servers":{}}}`, add,
			`{"mcp":{"servers":{"funnel": {"type":"local","command":["/opt/tools/mcp-funnel"]}}}}`, ""},
		{"opencode", `{"mcp":{"servers":{"command":["x"]}}}`, wrap,
			`{"mcp":{"servers":{"command":["/opt/tools/mcp-funnel", "wrap", "--", "x"]}}}`, ""},
		{"cursor", `{"mcpServers":{"a":{"url":"https://x"},"b":{"command":"c","args":["d"]}}}`, wrap,
			`{"mcpServers":{"a":{"url":"https://x"},"b":{"command":"/opt/tools/mcp-funnel","args":["wrap", "--", "c", "d"]}}}`,
			"a is not wrapped: it has a URL"},
		{"cursor", `{"mcpServers":{"a":{"command":"/x/mcp-funnel"}}}`, Change{Self: self, Wrap: []string{"a"}}, "", "a is this server itself"},
		{"cursor", `{"mcpServers":{"a":{"command":"b"}}}`, Change{Self: self, Wrap: []string{"a"}, Remove: true}, "", "a is not wrapped"},
		{"opencode", `{"mcp":{"s":{"command":["x"],"environment":{"K":"v","A":""}}}}`, wrap,
			`{"mcp":{"s":{"command":["/opt/tools/mcp-funnel", "wrap", "--env", "A,K", "--", "x"],` +
				`"environment":{"K":"v","A":""}}}}`, ""},
		{"codex", "[mcp_servers.s]\ncommand = \"x\"\nenv_vars = [\"K\"]\n", wrap, "[mcp_servers.s]\nargs = " +
			"[\"wrap\", \"--env\", \"K\", \"--\", \"x\"]\ncommand = \"/opt/tools/mcp-funnel\"\nenv_vars = [\"K\"]\n", ""},
		{"cursor", `{"mcpServers":{"funnel":{"command":"/old/mcp-funnel","args":["--root","/a"],"env":{"B":"c"}}}}`, add,
			`{"mcpServers":{"funnel":{"command":"/opt/tools/mcp-funnel","args":[],"env":{"B":"c"}}}}`, ""},
		{"zed", `{"context_servers":{"a":{"command":{"path":"x","args":[]}}}}`, wrap, "", "a is not wrapped"},
		{"codex", "[mcp_servers.funnel]\ncommand = \"/old/mcp-funnel\" # mine\nstartup_timeout_sec = 9\n", add,
			"[mcp_servers.funnel]\nargs = []\ncommand = \"/opt/tools/mcp-funnel\" # mine\nstartup_timeout_sec = 9\n", ""},
		{"claude-code", `{"hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"x"}]}]}}`,
			Change{Self: "/a b/mcp-funnel", Hook: true},
			`{"hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"x"}]}, ` +
				`{"hooks":[{"command":"'/a b/mcp-funnel' hook --configured","timeout":10,"type":"command"}],` +
				`"matcher":"Bash|Grep|WebFetch|Read|mcp__.*"}], "SessionStart": [` +
				`{"hooks":[{"command":"'/a b/mcp-funnel' hook session-start --configured","timeout":10,"type":"command"}],` +
				`"matcher":"compact|resume"}]}}`, ""},
		{"claude-code", `{"hooks":{"PostToolUse":[{"hooks":[{"command":"/old/mcp-funnel hook"},{"command":"y"}]}]}}`,
			Change{Self: self, Hook: true, Remove: true}, `{"hooks":{"PostToolUse":[{"hooks":[{"command":"y"}]}]}}`, ""},
	} {
		p, err := ByName(k.client).Plan([]byte(k.before), []byte("no backup"), k.change)
		if k.want == "" {
			k.want = k.before
		}
		if err != nil || string(p.After) != k.want || !strings.Contains(strings.Join(p.Notes, "\n"), k.note) {
			t.Errorf("%s %s:\n%s\nnot\n%s\n%v, %q", k.client, k.before, p.After, k.want, err, p.Notes)
		}
	}
}

// A server that a user has wrapped by hand stays wrapped until its wrapping is removed: no backup knows it.
func TestWrappedByHand(t *testing.T) {
	for client, k := range map[string]struct{ wrapped, plain, other string }{
		"cursor": {`{"mcpServers":{"files":{"command":"mcp-funnel","args":["wrap","--","npx","-y","x"]}}}`,
			`{"mcpServers":{"files":{"command":"npx","args":["-y","x"]}}}`, `{"mcpServers":{"other":{"url":"https://x"}}}`},
		"opencode": {`{"mcp":{"files":{"command":["mcp-funnel","wrap","--","npx","-y","x"]}}}`,
			`{"mcp":{"files":{"command":["npx","-y","x"]}}}`, `{"mcp":{"files":{"url":"https://x"}}}`},
		"codex": {"[mcp_servers.files]\ncommand = \"mcp-funnel\"\nargs = [\"wrap\", \"--\", \"npx\", \"-y\", \"x\"]\n",
			"[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\n", "a = 1\n"},
	} {
		c := ByName(client)
		add, files, all := Change{Self: self, Server: true}, []string{"files"}, []string{"all"}
		for _, backup := range [][]byte{nil, {}, []byte(k.other)} {
			plan := func(now string, ch Change) string {
				t.Helper()
				p := expect.Value(c.Plan([]byte(now), backup, ch))(t)
				return string(p.After)
			}
			added := expect.Value(c.apply([]byte(k.wrapped), []operation{{ServerName, toAdd, []string{self}}}))(t)
			for _, wrap := range [][]string{nil, files, all} {
				expect.Equal(t, plan(k.wrapped, Change{Self: self, Server: true, Wrap: wrap}), string(added),
					"%s, --wrap %s, backup %q", client, wrap, backup)
			}
			expect.Equal(t, plan(string(added), add), string(added), "%s, twice, backup %q", client, backup)
			for _, wrap := range [][]string{files, all} {
				expect.Equal(t, plan(k.wrapped, Change{Self: self, Wrap: wrap, Remove: true}), k.plain,
					"%s, --remove --wrap %s, backup %q", client, wrap, backup)
			}
			expect.Equal(t, plan(k.wrapped, Change{Self: self, Server: true, Remove: true}), k.wrapped,
				"%s, --remove, backup %q", client, backup)
		}
	}
}

// Hooks are added once, found again, and taken out to the byte.
func TestHook(t *testing.T) {
	c := ByName("claude-code")
	for _, text := range []string{
		"", "{}\n", `{"model": "x"}`, "{\n  \"hooks\": {\n    \"PostToolUse\": [\n      {\"hooks\": []}\n    ]\n  }\n}\n",
		"{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
	} {
		add := expect.Value(c.Plan([]byte(text), nil, Change{Self: self, Hook: true}))(t)
		again := expect.Value(c.Plan(add.After, []byte(text), Change{Self: self, Hook: true}))(t)
		out := expect.Value(c.Plan(add.After, []byte(text), Change{Self: self, Hook: true, Remove: true}))(t)
		if !add.Changed || again.Changed || string(out.After) != text {
			t.Errorf("%q: %v %v %q", text, add.Changed, again.Changed, out.After)
		}
		// An installation with the first hook alone gets the second one, and both go.
		first := operation{"", toAdd, []string{hookLine(self, nil, toolHook)}}
		before := expect.Value(c.apply([]byte(text), []operation{first}))(t)
		more := expect.Value(c.Plan(before, []byte(text), Change{Self: self, Hook: true}))(t)
		expect.Equal(t, string(more.After), string(add.After), "%q", text)
		out = expect.Value(c.Plan(more.After, []byte(text), Change{Self: self, Hook: true, Remove: true}))(t)
		expect.Equal(t, string(out.After), text)
	}
}

// The hook is the one that the documentation shows, with the settings of the server.
func TestHookOfTheDocumentation(t *testing.T) {
	page := expect.Value(os.ReadFile("../../../docs/HOOK.md"))(t)
	_, block, _ := strings.Cut(string(page), "```json\n")
	block, _, _ = strings.Cut(block, "```")
	block = strings.ReplaceAll(block, "/path/to/mcp-funnel/bin/mcp-funnel", self)
	got, err := ByName("claude-code").Block(Change{Self: self, Hook: true})
	expect.Must(t, err)
	var want, have any
	expect.Must(t, json.Unmarshal([]byte(block), &want))
	expect.Must(t, json.Unmarshal([]byte(got), &have))
	expect.Same(t, have, want, "%s\nnot\n%s", got, block)
	got, err = ByName("claude-code").Block(Change{Self: self, Args: []string{"--store", "/a b", "--x", ""}, Hook: true})
	if want := `"` + self + ` --store '/a b' --x '' hook --configured"`; err != nil || !strings.Contains(got, want) {
		t.Errorf("%s, %v", got, err)
	}
}

// A hook of this program that is there already is found, whoever wrote it: no second one is added, and it is removed.
func TestHookThatIsThere(t *testing.T) {
	c := ByName("claude-code")
	for line, k := range map[string]struct{ ours, stays bool }{
		self + " hook --configured":                                   {true, true},
		"'" + self + "' hook --configured":                            {true, true},
		self + " --store /s hook --configured --uncut WebFetch":       {true, true},
		self + " hook --tool-limit Bash.large-lines=400 --configured": {true, true},
		self + " hook": {true, false},
		self + " --uncut WebFetch hook --owner a":                      {true, false},
		"mcp-funnel hook --configured":                                 {true, false},
		"/old/mcp-funnel hook":                                         {true, false},
		`"/old one/mcp-funnel" hook --configured`:                      {true, false},
		`$CLAUDE_PROJECT_DIR/bin/mcp-funnel hook --configured`:         {true, false},
		`"$CLAUDE_PROJECT_DIR"/bin/mcp-funnel hook --configured`:       {true, false},
		`C:\tools\mcp-funnel.exe hook --configured`:                    {true, false},
		"MCP_FUNNEL_STORE=/s mcp-funnel hook --configured 2>/dev/null": {true, false},
		"mcp-funnel --store hook gc":                                   {false, false},
		self + " hook session-start --configured":                      {false, false},
		"other hook --configured":                                      {false, false},
		"echo mcp-funnel hook":                                         {false, false},
		"/usr/bin/log-it; mcp-funnel hook":                             {false, false},
		"log-it && " + self + " hook --configured":                     {false, false},
		"tee /tmp/log | mcp-funnel hook":                               {false, false},
		"mcp-funnel 'hook":                                             {false, false},
	} {
		quoted := expect.Value(json.Marshal(line))(t)
		text := []byte(`{"hooks":{"PostToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":` +
			string(quoted) + `}]},{"hooks":[{"command":"x"}]}],"SessionStart":[{"hooks":[{"command":"` +
			self + ` hook session-start --configured"}]}]}}`)
		lines := func(p Plan) []string {
			d := expect.Value(c.parse(p.After))(t)
			return slices.Concat(d.hooks([]string{"hooks", "PostToolUse"})...)
		}
		added := expect.Value(c.Plan(text, nil, Change{Self: self, Hook: true}))(t)
		want := []string{"x", self + " hook --configured"}
		if k.stays {
			want = []string{line, "x"}
		} else if !k.ours {
			want = append([]string{line}, want...)
		}
		if got := lines(added); !slices.Equal(got, want) || added.Changed == k.stays {
			t.Errorf("%s: added: %q", line, got)
		}
		for _, now := range [][]byte{text, added.After} {
			out := expect.Value(c.Plan(now, nil, Change{Self: self, Hook: true, Remove: true}))(t)
			want := []string{line, "x"}
			if k.ours {
				want = want[1:]
			}
			expect.EqualList(t, lines(out), want, "%s: removed", line)
		}
		set := expect.Value(c.Plan(text, nil, Change{Self: self, Args: []string{"--store", "/new"}, Hook: true}))(t)
		if got := lines(set); k.ours && !slices.Equal(got, []string{"x", self + " --store /new hook --configured"}) {
			t.Errorf("%s: with settings: %q", line, got)
		}
	}
}

// A file that is broken, or that could be misread, is refused with its place.
func TestRefused(t *testing.T) {
	for _, k := range []struct{ client, text, want string }{
		{"cursor", "{\n  \"a\": ,\n}", "line 2, column 8"},
		{"cursor", "{\n  \"mcpServers\": {", "line 2, column 18"},
		{"cursor", "[]", "line 1, column 1: the file is no object"},
		{"cursor", "{\n\"mcpServers\": []}", "line 2, column 15: mcpServers is no object"},
		{"cursor", "{\"mcpServers\": {},\n \"mcpServers\": {}}", `line 2, column 2: "mcpServers" is there twice`},
		{"cursor", "{\"mcpServers\": {\"funnel\": {},\n \"funnel\": {}}}", `line 2, column 2: "funnel" is there twice`},
		{"cursor", "{\"mcpServers\": {\"funnel\": {\"command\": \"x\"}}}", "another program"},
		{"cursor", "{\"a\": \"\xff\"}", "line 1, column 8: it is not UTF-8"},
		{"cursor", "\xff\xfe{\x00}\x00", "line 1, column 1: it is not UTF-8"},
		{"cursor", strings.Repeat("[", maxNested+1), "too many"},
		{"cursor", strings.Repeat("[", maxNested), "unexpected EOF"}, // and no overflow
		{"cursor", "{\"a\":" + strings.Repeat("[", maxNested-1) + strings.Repeat("]", maxNested-1) + "}",
			"exceeded max depth"},
		{"claude-desktop", "{\n  // x\n}", "line 2, column 3"},
		{"claude-code", "{\n  \"a\": 1,\n}", "line 3, column 1"},
		{"codex", "a = 1\nb = = 2\n", "line 2, column"},
		{"codex", "mcp_servers = 1\n", "no table"},
		{"codex", "mcp_servers = { a = { command = \"x\" } }\n", "cannot be edited safely"},
	} {
		expect.Fails(t, expect.Err(ByName(k.client).Plan([]byte(k.text), nil, Change{Self: self, Server: true})),
			k.want, "%s %.40q", k.client, k.text)
	}
	for _, text := range []string{ // these cannot be wrapped in place, and must stay as they are
		"[mcp_servers]\na = { command = \"x\" }\n", "mcp_servers.a.command = \"x\"\n",
		"[mcp_servers.a]\ndoc = '''\ncommand = \"y\"\n'''\ncommand = \"x\"\n",
	} {
		if p, err := ByName("codex").Plan([]byte(text), nil, Change{Self: self, Wrap: []string{"a"}}); err == nil {
			t.Errorf("%q becomes %q", text, p.After)
		}
	}
	expect.Fails(t, expect.Err(ByName("cursor").Plan(nil, nil, Change{Self: self, Wrap: []string{"nosuch"}})), "",
		"an unknown server is wrapped")
	expect.Fails(t, expect.Err(ByName("cursor").Plan(nil, nil, Change{Self: "/\xff", Server: true})), "",
		"a path that is not UTF-8 is written")
}

func TestDiff(t *testing.T) {
	long := strings.Repeat("é", 3000)
	for _, k := range []struct{ before, after, want string }{
		{"", "a\nb\n", "+ a\n+ b\n"},
		{"a\n", "", "- a\n"},
		{"a\nb\nc\nd\ne\n", "a\nB\nc\nD\ne\nf\n", "- b\n+ B\n- d\n+ D\n+ f\n"},
		{"a\r\nb\r\n", "a\r\nx\r\nb\r\n", "+ x\n"},
		{long + "a", long + "b", "- …" + strings.Repeat("é", 50) + "a\n+ …" + strings.Repeat("é", 50) + "b\n"},
	} {
		expect.Equal(t, Diff([]byte(k.before), []byte(k.after)), k.want, "%.20q and %.20q", k.before, k.after)
	}
	many := strings.Repeat("a\n", 3000) // too many to compare
	expect.Equal(t, strings.Count(Diff([]byte("b\n"+many+"b\n"), []byte("x\n"+many+"y\n")), "\n"), 6004, "lines")
}

// Whatever a file holds: it is refused, or nothing is lost.
func FuzzChanges(f *testing.F) {
	for i := range clients {
		for _, k := range texts(&clients[i]) {
			f.Add(i, []byte(k.text))
		}
	}
	f.Add(2, []byte(`{"mcpServers":{"files":{"command":"mcp-funnel","args":["wrap","--","npx","-y","x"]}}}`))
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		c := &clients[uint(i)%uint(len(clients))]
		add := Change{Self: self, Args: []string{"x"}, Server: true, Wrap: []string{"all"}, Hook: c.settings[0] != ""}
		remove := add
		remove.Remove = true
		p, err := c.Plan(text, nil, add)
		if err != nil || !p.Changed {
			return
		}
		again, err := c.Plan(p.After, text, add)
		if err != nil || again.Changed {
			t.Errorf("again: %v, %q becomes %q", err, p.After, again.After)
		}
		d := expect.Value(c.parse(text))(t)
		back, err := c.Plan(p.After, text, remove)
		if len(d.ours(self)) == 0 && (err != nil || !bytes.Equal(back.After, text)) {
			t.Errorf("%q comes back as %q, %v", text, back.After, err)
		}
		if _, err := c.Plan(p.After, []byte("x = y"), remove); err != nil && !errors.Is(err, errLayout) {
			t.Errorf("cut out of %q: %v", p.After, err)
		}
	})
}

func TestFind(t *testing.T) {
	variables := map[string]string{}
	for _, k := range []struct{ os, client, make, want string }{
		{"linux", "claude-desktop", ".config/Claude/", ".config/Claude/claude_desktop_config.json"},
		{"darwin", "claude-desktop", "Library/Application Support/Claude/", "Library/Application Support/Claude/claude_desktop_config.json"},
		{"windows", "claude-desktop", "AppData/Roaming/Claude/", "AppData/Roaming/Claude/claude_desktop_config.json"},
		{"windows", "claude-desktop", "AppData/Local/Packages/Claude_x/LocalCache/Roaming/Claude/",
			"AppData/Local/Packages/Claude_x/LocalCache/Roaming/Claude/claude_desktop_config.json"},
		{"linux", "claude-code", ".claude/", ".claude.json"},
		{"linux", "cursor", ".cursor/mcp.json", ".cursor/mcp.json"},
		{"linux", "vscode", ".config/Code - Insiders/User/mcp.json", ".config/Code - Insiders/User/mcp.json"},
		{"darwin", "vscode", "Library/Application Support/Code/User/", "Library/Application Support/Code/User/mcp.json"},
		{"windows", "windsurf", ".codeium/windsurf/", ".codeium/windsurf/mcp_config.json"},
		{"darwin", "zed", ".config/zed/", ".config/zed/settings.json"},
		{"windows", "zed", "AppData/Roaming/Zed/", "AppData/Roaming/Zed/settings.json"},
		{"linux", "codex", ".codex/", ".codex/config.toml"},
		{"linux", "gemini", ".gemini/", ".gemini/settings.json"},
		{"linux", "opencode", ".config/opencode/opencode.jsonc", ".config/opencode/opencode.jsonc"},
		{"linux", "opencode", ".config/opencode/", ".config/opencode/opencode.json"},
	} {
		home := t.TempDir()
		e := Environment{OS: k.os, Home: home, Getenv: func(name string) string { return variables[name] }}
		if _, _, err := ByName(k.client).Find(e); err == nil || !strings.Contains(err.Error(), "not to be installed") ||
			!strings.Contains(err.Error(), home) {
			t.Errorf("%s on %s without anything: %v", k.client, k.os, err)
		}
		expect.Must(t, os.MkdirAll(filepath.Join(home, filepath.Dir(k.make)), 0o700))
		if !strings.HasSuffix(k.make, "/") {
			expect.Must(t, os.WriteFile(filepath.Join(home, k.make), nil, 0o600))
		}
		got, _, err := ByName(k.client).Find(e)
		if err != nil || got[0] != filepath.Join(home, k.want) {
			t.Errorf("%s on %s: %s, %v", k.client, k.os, got, err)
		}
	}
	project := t.TempDir()
	for i := range clients {
		c := &clients[i]
		if files, _, err := c.Find(Environment{Project: project, Getenv: os.Getenv}); c.HasProjects() &&
			(err != nil || !strings.HasPrefix(files[0], project)) {
			t.Errorf("%s in a project: %s, %v", c.Name, files, err)
		}
	}
}
