//go:build linux

package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// configured writes a configuration file and returns the command that serves it.
func configured(t *testing.T, text string, command ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, text)
	return append([]string{binary, "--config", file, "--store", t.TempDir(), "--min-free", "0"}, command...)
}

// entry returns the entry of a sick server.
func entry(fault, more string) string {
	return fmt.Sprintf(`{command: %q, args: [sick, %q, ""]%s}`, os.Args[0], fault, more)
}

// Several servers stand side by side. A name that clashes gets the server's before it, a list of allowed tools counts,
// and one that cannot be started is left out. The block of a client is read as it is.
func TestSeveralServers(t *testing.T) {
	t.Setenv("GIVEN", "planted")
	config := "upstreams:\n  one: " + entry("none", ", deny: [ro*]") + "\n  two: " + entry("environment",
		`, allow: [echo, search], env: {FROM: "the ${GIVEN}"}`) + "\n  bad: " + entry("ends at once", "") + "\n" +
		`mcpServers: {"My Server!": {"type": "stdio", "command": "` + os.Args[0] + `", "args": ["sick", "none", ""],
  "alwaysAllow": ["x"], "timeout": 60, "env": {"PORT": 8080, "FLAG": true}}, "off": {"command": "x", "disabled": true},
  "old": {"command": "x", "envFile": ".env", "enabled": false}}` + "\n"
	c := start(t, configured(t, config, "wrap")...)
	list := names(t, c.request("tools/list", "{}"))
	theirs := list[slices.Index(list, "slice")+1:]
	want := []string{"echo", "import", "raw", "one_search", "two_echo", "two_search",
		"my-server_echo", "rows", "my-server_import", "my-server_raw", "my-server_search"}
	expect.EqualList(t, theirs, want, "tools: %q", list)
	expect.Contains(t, c.call("two_echo", "{}"), "FROM=the planted")
	if got := c.call("two_echo", "{}"); strings.Contains(got, "GIVEN") {
		t.Errorf("a variable that is not given: %s", got)
	}
	expect.Contains(t, c.call("one_search", "{}"), "theirs")
	expect.Contains(t, c.call("two_import", "{}"), "unknown tool")
	expect.Contains(t, c.call("rows", "{}"), "kept whole")

	own := start(t, configured(t, config, "serve", "--root", t.TempDir())...)
	if list := names(t, own.request("tools/list", "{}")); !slices.Contains(list, "read") ||
		!slices.Contains(list, "two_search") {
		t.Errorf("serve: %q", list)
	}
}

// A client's JSON file is taken with its comments and trailing commas, and an error in it has its place.
func TestClientsFile(t *testing.T) {
	text := "// mine\n{\n\t\"mcpServers\": { /* two */\n\t\t\"a\": {\"command\": \"" + os.Args[0] +
		"\", \"args\": [\"sick\", \"none\", \"a // b\",],},\n\t},\n}"
	c := start(t, configured(t, text, "wrap")...)
	if list := names(t, c.request("tools/list", "{}")); !slices.Contains(list, "echo") {
		t.Errorf("tools: %q", list)
	}
	words := configured(t, strings.Replace(text, `"command"`, `"url": "http://x", "command"`, 1), "wrap")
	out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "config.yaml:4:") {
		t.Errorf("%v: %s", err, out)
	}
}

// The configuration of the documentation is taken.
func TestDocumentedConfiguration(t *testing.T) {
	text := expect.Value(os.ReadFile("../../docs/UPSTREAM.md"))(t)
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	t.Setenv("SHOP_KEY", "x")
	words := configured(t, block, "stats")
	run := func() string {
		out, _ := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput() // the text says it
		return string(out)
	}
	expect.Contains(t, run(), "the variable ISSUES_TOKEN is not set")
	t.Setenv("ISSUES_TOKEN", "y")
	expect.Lacks(t, run(), "config.yaml")
}

// A program is looked up in PATH, and not in the current directory.
func TestProgramOfAServer(t *testing.T) {
	dir, planted := t.TempDir(), t.TempDir()
	mark := filepath.Join(planted, "mark")
	expect.Must(t, os.Symlink(os.Args[0], filepath.Join(dir, "well-known")))
	script := []byte("#!/bin/sh\ntouch " + mark + "\n")
	//nolint:gosec // it must not be run
	expect.Must(t, os.WriteFile(filepath.Join(planted, "well-known"), script, 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Chdir(planted)
	c := start(t, configured(t, `mcpServers: {a: {command: well-known, args: [sick, none, ""]}}`, "wrap")...)
	expect.Contains(t, c.call("echo", "{}"), `"x":1.50`)
	expect.Fails(t, expect.Err(os.Stat(mark)), "", "the program of the current directory was run")
}

// Two servers of one command have records of their own. The tools of ours are served if no other can be started.
func TestSameCommandAndNone(t *testing.T) {
	one := `{command: ` + os.Args[0] + `, args: [sick, none, ""], env: {V: `
	words := configured(t, "upstreams:\n  one: "+one+"1}}\n  two: "+one+"2}}\n", "wrap")
	for range 2 {
		c := start(t, words...)
		if list := names(t, c.request("tools/list", "{}")); !slices.Contains(list, "two_echo") {
			t.Errorf("tools: %q", list)
		}
		expect.Contains(t, c.call("two_echo", "{}"), `"x":1.50`)
		c.end()
	}
	gone := "upstreams:\n  gone: " + entry("ends at once", "") + "\n"
	none := start(t, configured(t, gone, "serve", "--root", t.TempDir())...)
	if list := names(t, none.request("tools/list", "{}")); !slices.Contains(list, "read") {
		t.Errorf("tools: %q", list)
	}
}

// The log says why a server cannot be started, and not that it has not answered in time.
func TestProgramThatIsMissing(t *testing.T) {
	inParallel(t)
	good := "  good: " + entry("none", "") + "\n"
	for _, k := range []struct{ command, others string }{
		{"serve", ""}, {"serve", good}, {"wrap", good}, {"wrap", good + "  none: {command: no-other-program}\n"},
	} {
		c := start(t, configured(t, "upstreams:\n  gone: {command: no-such-program}\n"+k.others, k.command)...)
		for range 2 {
			c.request("tools/list", "{}")
			c.request("prompts/list", "{}")
		}
		c.end()
		log := c.errs.String()
		for line := range strings.Lines(log) {
			if strings.Contains(line, "upstream server") && !strings.Contains(line, "executable file not found") {
				t.Errorf("%s with %q: %s", k.command, k.others, line)
			}
		}
		expect.Contains(t, log, "executable file not found")
	}
}

// An answer that never ends is an error of its call, and the last line of standard error says why a server has ended.
func TestEndlessAnswer(t *testing.T) {
	inParallel(t)
	c := start(t, wrapped(t.TempDir(), sick("endless answer", "")...)...)
	expect.Contains(t, c.call("echo", "{}"), "over 268435456 bytes")
	c = start(t, wrapped(t.TempDir(), sick("ends with a word", "")...)...)
	expect.Contains(t, c.call("echo", "{}"), "the server has ended", "panic: out of cheese")
}

func TestBadServers(t *testing.T) {
	inParallel(t)
	for _, c := range corpus.Rows[[2]string](t, "bad_servers.ndjson") {
		text, want := c[0], c[1]
		words := configured(t, text, "wrap")
		out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "config.yaml:") {
			t.Errorf("%s: %v: %s", text, err, out)
		}
	}
	for _, none := range []string{"", "mcpServers: null", `{"mcpServers": {}}`} {
		words := configured(t, none, "wrap")
		out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "write the command of the server after --") {
			t.Errorf("%q: %v: %s", none, err, out)
		}
	}
}

// A tool that runs only as a task is not listed, and the instructions say so, also when the server is known.
func TestToolsThatNeedTasks(t *testing.T) {
	state, store := filepath.Join(t.TempDir(), "state"), t.TempDir()
	var list []string
	for _, support := range []string{"required", "optional", "forbidden"} {
		list = append(list, fmt.Sprintf(
			`{"name":"is_%[1]s","inputSchema":{"type":"object"},"execution":{"taskSupport":%[1]q}}`, support))
	}
	write(t, state, "["+strings.Join(list, ",")+"]")
	for range 2 {
		c := startProcess(t, wrapped(store, sick("none", state)...)...)
		expect.Contains(t, c.request("initialize", hello), "tasks are not passed on: is_required")
		got := names(t, c.request("tools/list", "{}"))
		if slices.Contains(got, "is_required") || !slices.Contains(got, "is_optional") ||
			!slices.Contains(got, "is_forbidden") {
			t.Errorf("%q", got)
		}
		c.end()
	}
}

// A server that starts itself is refused.
func TestItself(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("min-free: 0\nstore: %s\nupstreams:\n  me: {command: %s, args: [--config, %s, wrap]}\n",
		t.TempDir(), binary, file)
	write(t, file, text)
	answer, _ := refused(t, []string{binary, "--config", file, "wrap"})
	expect.Contains(t, answer, "starts itself")
}

// Over HTTP each session has a process of its own, which ends with it.
func TestSessionsHaveTheirOwn(t *testing.T) {
	t.Setenv("MCP_FUNNEL_TOKEN", strings.Repeat("t", 40))
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := exec.CommandContext(t.Context(), binary, "--store", t.TempDir(), "--min-free", "0", "--http", "127.0.0.1:0",
		"wrap", "--", os.Args[0], "sick", "counts", mark)
	url := listening(t, cmd, `http://127\.0\.0\.1:\d+/mcp`)
	post := func(session, method, params string) (string, string) {
		t.Helper()
		verb := map[bool]string{true: "DELETE", false: "POST"}[method == ""]
		request := expect.Value(http.NewRequestWithContext(t.Context(), verb, url,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)))(t)
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MCP_FUNNEL_TOKEN"))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			request.Header.Set("Mcp-Session-Id", session)
		}
		response, err := http.DefaultClient.Do(request)
		expect.Must(t, err)
		defer response.Body.Close() //nolint:errcheck // it is read
		body := expect.Value(io.ReadAll(response.Body))(t)
		return string(body), response.Header.Get("Mcp-Session-Id")
	}
	var sessions []string
	for range 2 {
		_, id := post("", "initialize", hello)
		sessions = append(sessions, id)
	}
	for i, want := range []string{"call 1", "call 2", "call 1"} {
		body, _ := post(sessions[i/2], "tools/call", `{"name":"echo","arguments":{}}`)
		expect.Contains(t, body, want)
	}
	if n := len(processesWith(mark)); n < 3 { // wrap and two servers
		t.Errorf("%d processes", n)
	}
	for _, id := range sessions {
		post(id, "", "{}")
	}
	waitFor(t, func() bool { return len(processesWith(mark)) == 1 })
}

// waitFor waits until done holds.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to hold")
		}
	}
}
