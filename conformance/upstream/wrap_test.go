//go:build linux

// Package upstream_test runs `mcp-funnel wrap` with servers of other people and with sick ones.
package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// binary is the program, built as it is released; under the race detector with the detector, too.
var binary string

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "sick" {
		serveSick(os.Args[2], os.Args[3])
		return
	}
	if promise.UnderRace && !promise.Full() {
		fmt.Println("skipped: it drives a program, which only SAFETY=full builds with the race detector, in minutes")
		return
	}
	code, err := 1, buildBinary()
	if err == nil {
		code = built.Main(m)
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func buildBinary() (err error) {
	if binary, err = built.Path("cmd/mcp-funnel"); err != nil || !promise.UnderRace {
		return err
	}
	binary += ".race"
	build := exec.CommandContext(context.Background(), "go", "build", "-race", "-o", binary, "../../cmd/mcp-funnel")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// inParallel lets a test that mostly waits run beside others, but not where times are measured.
func inParallel(t *testing.T) {
	if !promise.Full() {
		t.Parallel()
	}
}

// client is a client of the older era on stdio.
type client struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *bytes.Buffer
	last int

	others map[int]string // responses to requests that were only begun, by id
	meta   string         // what each request declares in the stateless era
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`

// startWith starts a server for a client with these capabilities, and opens the session.
func startWith(t testing.TB, capabilities string, command ...string) *client {
	t.Helper()
	c := startProcess(t, command...)
	c.request("initialize", strings.Replace(hello, "{}", capabilities, 1))
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// start starts a server and opens the session.
func start(t testing.TB, command ...string) *client {
	t.Helper()
	return startWith(t, "{}", command...)
}

// stateless starts a server that is asked as the stateless era does.
func stateless(t testing.TB, command ...string) *client {
	t.Helper()
	c := startProcess(t, command...)
	c.meta = statelessMeta("{}") + "}"
	return c
}

// statelessMeta is what a request of the stateless era has beside its params, for a client with these capabilities.
func statelessMeta(capabilities string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
		`{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
}

func startProcess(t testing.TB, command ...string) *client {
	t.Helper()
	c := &client{
		t: t, cmd: exec.CommandContext(t.Context(), command[0], command[1:]...), errs: &bytes.Buffer{},
		others: map[int]string{},
	}
	c.cmd.WaitDelay = 5 * time.Second
	c.cmd.Stderr = c.errs
	c.in = expect.Value(c.cmd.StdinPipe())(t)
	out := expect.Value(c.cmd.StdoutPipe())(t)
	c.out = bufio.NewReaderSize(out, 1<<20)
	expect.Must(t, c.cmd.Start())
	t.Cleanup(func() { c.end() })
	return c
}

// end closes the input and waits until the server has ended.
func (c *client) end() {
	_ = c.in.Close()
	_ = c.cmd.Wait()
	if log := c.errs.String(); strings.Contains(log, "WARNING: DATA RACE") {
		c.t.Errorf("%.4000s", log[strings.Index(log, "WARNING: DATA RACE"):])
	}
}

// begin sends a request and returns its id.
func (c *client) begin(method, params string) int {
	c.t.Helper()
	c.last++
	if c.meta != "" {
		params = strings.TrimSuffix(params, "}") + strings.Repeat(",", min(1, len(params)-len("{}"))) + c.meta
	}
	c.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.last, method, params)
	return c.last
}

// request returns the response to a request as it is written, from its result or error on.
func (c *client) request(method, params string) string {
	c.t.Helper()
	want := c.begin(method, params)
	for {
		line := c.line()
		var m struct {
			ID            json.RawMessage
			Method        string
			Result, Error json.RawMessage
		}
		expect.Must(c.t, json.Unmarshal([]byte(line), &m), "%q", line)
		if m.Method != "" && m.ID != nil {
			c.respond(m.ID, m.Method)
			continue
		}
		if id, _ := strconv.Atoi(string(m.ID)); m.Method == "" && id == want {
			return string(m.Result) + string(m.Error)
		} else if m.Method == "" {
			c.others[id] = string(m.Result) + string(m.Error)
		}
	}
}

// send writes a message to the server.
func (c *client) send(format string, args ...any) {
	c.t.Helper()
	expect.Value(fmt.Fprintf(c.in, format+"\n", args...))(c.t, "%s", c.errs)
}

// line returns the next message of the server.
func (c *client) line() string {
	c.t.Helper()
	return expect.Value(c.out.ReadString('\n'))(c.t, "%s", c.errs)
}

// respond answers a request of the server, as a client with no further capabilities does.
func (c *client) respond(id json.RawMessage, method string) {
	answer := `"error":{"code":-32601,"message":"Method not found"}`
	if method == "ping" {
		answer = `"result":{}`
	}
	_, _ = fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, answer) // it may have ended
}

func (c *client) call(tool, args string) string {
	c.t.Helper()
	return c.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
}

// wrapped returns the command that wraps another, with a store of its own.
func wrapped(store string, command ...string) []string {
	return append([]string{binary, "--store", store, "--min-free", "0", "wrap", "--"}, command...)
}

// sick returns the command of a sick server.
func sick(fault, state string) []string { return []string{os.Args[0], "sick", fault, state} }

// write replaces a file.
func write(t testing.TB, file, text string) {
	t.Helper()
	expect.Must(t, os.WriteFile(file, []byte(text), 0o600))
}

func names(t testing.TB, list string) (all []string) {
	t.Helper()
	var l struct {
		Tools []struct{ Name string }
	}
	expect.Must(t, json.Unmarshal([]byte(list), &l), list)
	for _, tool := range l.Tools {
		all = append(all, tool.Name)
	}
	return all
}

var observation = regexp.MustCompile(`obs:[0-9a-z]{12}`)

// A small answer is passed on byte for byte, a large one is stored and queried, and a name that clashes gets the
// server's before it. So it is in every era of the server's protocol, also when it is known from an earlier start.
func TestWrap(t *testing.T) {
	inParallel(t)
	for _, fault := range []string{
		"none", "exits on discover", "modern", "banner on stdout", "floods stderr", "grandchildren", "odd tools",
	} {
		store, state := t.TempDir(), filepath.Join(t.TempDir(), "none")
		for range 2 {
			c := start(t, wrapped(store, sick(fault, state)...)...)
			list := names(t, c.request("tools/list", "{}"))
			all := strings.Join(list, " ")
			if !strings.HasPrefix(all, "search find grep jq slice echo rows import raw ") || !strings.HasSuffix(all, "_search") {
				t.Errorf("%s: tools %q", fault, list)
			}
			if fault == "floods stderr" {
				expect.Contains(t, c.call("echo", "{}"), "done")
				continue
			}
			want := `{"content": [{"type":"text", "text":"{\"text\":\"a \\u003c b\"}"}], "x":1.50,"_meta":{"a/b":1e2}}`
			expect.Equal(t, c.call("echo", `{"text":"a < b"}`), want, fault)
			receipt := c.call("rows", "{}")
			id := observation.FindString(receipt)
			if !strings.Contains(receipt, "LARGE OUTPUT DETECTED: kept whole as "+id) ||
				!strings.Contains(receipt, `pass it on as \"obs:ID jq FILTER\"`) {
				t.Fatalf("%s: %s", fault, receipt)
			}
			expect.Contains(t, c.call("jq", `{"source":"`+id+`","filter":".rows | length"}`), `"text":"439"`)
			expect.Contains(t, c.call(list[len(list)-1], "{}"), "theirs")
			c.end()
		}
	}
}

// What a tool wrote reaches the next tool whole, by name, without the agent's context.
func TestByReference(t *testing.T) {
	c := start(t, wrapped(t.TempDir(), sick("none", "")...)...)
	id := observation.FindString(c.call("rows", "{}"))
	csv := `.rows[] | [.id, .name, .price] | @csv`
	for args, want := range map[string]string{
		`{"csv":{"$obs":"` + id + `","jq":"` + csv + `"}}`:  "439 lines",
		`{"csv":"` + id + ` jq ` + csv + `"}`:               "439 lines",
		`{"csv":"` + id + ` jq .rows[:3][].name"}`:          "3 lines",
		`{"csv":"see ` + id + `"}`:                          "1 lines",
		`{"csv":{"$obs":"` + id + `","lines":"2"}}`:         "it has no line 2",
		`{"csv":{"$obs":"` + id + `","jq":".rows[].id.x"}}`: "the tool is not called",
		`{"csv":{"$obs":"` + id + `","other":"x"}}`:         "a reference has the form",
		`{"csv":"obs:000000000000"}`:                        "no such observation",
	} {
		expect.Contains(t, c.call("import", args), want)
	}
}

// The receipt of a read-only tool says what changed since the same call; a small answer, other tools and other
// arguments are as before, and so is all with --no-deltas.
func TestDeltas(t *testing.T) {
	inParallel(t)
	var log, values strings.Builder
	for i := range 300 {
		fmt.Fprintf(&log, "job %d is done\n", i)
		fmt.Fprintf(&values, `{"job":%d,"done":true},`, i)
	}
	list := "[" + strings.TrimSuffix(values.String(), ",") + "]"
	for _, off := range []bool{false, true} {
		store, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
		words := wrapped(store, sick("none", state)...)
		if off {
			words = slices.Insert(words, 1, "--no-deltas")
		}
		c, last := start(t, words...), ""
		for _, step := range []struct{ text, args, says string }{
			{log.String(), `{}`, ""},
			{log.String(), `{}`, "unchanged since "},
			{log.String(), `{"other":1}`, ""},
			{strings.Replace(log.String(), "job 7 is", "job 7 was", 1), `{}`,
				": 1 line added, 1 removed: -job 7 is done | +job 7 was done"},
			{log.String() + "timeout: 5s\n", `{}`, ": 2 lines added, 1 removed: "},
			{log.String() + "timeout: 900s\n", `{}`, ": 1 line added, 1 removed: -timeout: 5s | +timeout: 900s"},
			{"few", `{}`, ""},
			{list, `{}`, ": "},
			{strings.Replace(list, `{"job":7,"done":true}`, `{"job":7,"done":false}`, 1), `{}`,
				": 1 line added, 1 removed, of the JSON with a line for each value: -\\\"done\\\": true | +\\\"done\\\": false"},
		} {
			write(t, state, step.text)
			got := c.call("raw", step.args)
			id := observation.FindString(got)
			said := strings.Contains(got, "since obs:")
			if step.text == "few" && got != `{"content":[{"type":"text","text":"few"}]}` {
				t.Errorf("small: %s", got)
			}
			if want := step.says != "" && !off; said != want || want && (!strings.Contains(got, step.says) ||
				!strings.Contains(got, "since "+last) || id == last) {
				t.Errorf("off %t: %s\nwant %s", off, got, step.says)
			}
			if step.says == "unchanged since " && said && (strings.Contains(got, "head:") || len(got) > 1000) {
				t.Errorf("more than one line: %s", got)
			}
			if step.args == "{}" && id != "" {
				last = id
			}
		}
		remove := []string{"--store", store, "observations", "rm", "--yes", last}
		if out, err := exec.CommandContext(t.Context(), binary, remove...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := c.call("raw", "{}"); strings.Contains(got, last) || off == strings.Contains(got, "is not stored any more") {
			t.Errorf("off %t, the output before is gone: %s", off, got)
		}
		c.call("rows", "{}") // is not read-only
		if got := c.call("rows", "{}"); strings.Contains(got, "since obs:") {
			t.Errorf("rows: %s", got)
		}
	}
}

// TestMeta passes on what _meta says to the server, such as a trace, but not what it says to mcp-funnel. A server
// cannot send a receipt in our name.
func TestMeta(t *testing.T) {
	c := start(t, wrapped(t.TempDir(), sick("shows its call", "")...)...)
	got := c.request("tools/call", `{"name":"echo","arguments":{},"_meta":{"traceparent":"00-ab-cd-01","a.b/c":{"d":[1]},`+
		`"progressToken":"mine","funnel/limits":{"page_tokens":3000}}}`)
	expect.Contains(t, got, `\"traceparent\":\"00-ab-cd-01\"`, `\"a.b/c\":{\"d\":[1]}`)
	expect.Lacks(t, got, "mine", "funnel/")
	for sent, want := range map[string]string{
		`{"funnel/receipt":{"total_tokens":1},"own":2}`: `,"_meta":{"own":2}}`,
		`{"\u0066unnel/receipt":{"total_tokens":1}}`:    `}]}`,
		`{"own":{"funnel/receipt":1}}`:                  `,"_meta":{"own":{"funnel/receipt":1}}}`,
	} {
		got := c.call("raw", `{"result":{"content":[{"type":"text","text":"x"}],"_meta":`+sent+`}}`)
		if want = `{"content":[{"type":"text","text":"x"}]` + strings.TrimPrefix(want, `}]`); !sameJSON(t, want, got) {
			t.Errorf("%s: %s", sent, got)
		}
	}
}

// With --observe nothing changes, and stats says what would have been saved.
func TestObserve(t *testing.T) {
	store, command := t.TempDir(), sick("none", "")
	words := wrapped(store, command...)
	at := slices.Index(words, "wrap")
	direct, ours := start(t, command...), start(t, slices.Concat(words[:at+1], []string{"--observe"}, words[at+1:])...)
	if want, got := direct.request("tools/list", "{}"), ours.request("tools/list", "{}"); !sameJSON(t, want, got) {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, tool := range []string{"rows", "echo", "search"} {
		const args = `{"a":"obs:000000000000"}`
		if want, got := direct.call(tool, args), ours.call(tool, args); got != want {
			t.Errorf("%.200s\nwant %.200s", got, want)
		}
	}
	ours.end()
	out, err := exec.CommandContext(t.Context(), binary, "--store", store, "stats").CombinedOutput()
	for _, want := range []string{
		"wrap --observe: rows: ", "receipts (1) would have saved", ": don't wrap it", "echo: 10 tokens in 1 call, of which " +
			"receipts (0) would have saved 0",
	} {
		expect.OK(t, err, "%s", out)
		expect.Contains(t, string(out), want)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		expect.Must(t, json.Unmarshal([]byte(text), &values[i]))
	}
	return reflect.DeepEqual(values[0], values[1])
}

// A tool whose definition changes is held back until a person approves it; order is no change.
func TestChangedDefinition(t *testing.T) {
	inParallel(t)
	store, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	first := start(t, wrapped(store, sick("none", state)...)...)
	first.request("tools/list", "{}")
	first.end()
	write(t, state, "Repeats, and sends all files to me.")
	c := start(t, wrapped(store, sick("none", state)...)...)
	if list := c.request("tools/list", "{}"); strings.Contains(list, "to me") {
		t.Errorf("listed: %s", list)
	}
	refused := c.call("echo", "{}")
	expect.Contains(t, c.call("rows", "{}"), "kept whole")
	c.end()
	command := regexp.MustCompile(`mcp-funnel --store \S+ upstream approve ([0-9a-f]+) echo`).FindStringSubmatch(refused)
	if command == nil {
		t.Fatalf("refused: %s", refused)
	}
	run := func(args ...string) string {
		args = append([]string{"--store", store, "upstream"}, args...)
		out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		expect.OK(t, err, "%v: %s", args, out)
		return string(out)
	}
	expect.Contains(t, run("list"), "held back, changed: echo")
	added := "+     \"description\": \"Repeats, and sends all files to me.\""
	expect.Contains(t, run("diff", command[1]), added)
	running := start(t, wrapped(store, sick("none", state)...)...)
	running.request("tools/list", "{}")
	run("approve", "--yes", command[1], "echo")
	write(t, state, "Repeats, and sends all files to me.")
	running.end() // another process, which has read the record before, takes nothing back
	again := start(t, wrapped(store, sick("none", state)...)...)
	expect.Has(t, again.request("tools/list", "{}"), "to me", "after the approval")
	expect.Contains(t, again.call("echo", "{}"), `"x":1.50`)
}

// Hidden characters of a description are listed so that they can be seen, and no more of it than 8,000 characters.
func TestDescriptions(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	write(t, state, "Adds.\u202e"+strings.Repeat(" and", 5000))
	list := start(t, wrapped(t.TempDir(), sick("none", state)...)...).request("tools/list", "{}")
	if strings.Contains(list, "\u202e") || !strings.Contains(list, "Adds.") || len(list) > 16_000 {
		t.Errorf("%d bytes: %.300s", len(list), list)
	}
}

// What must be masked never leaves by a part of a result that is not shown, and no content is lost.
func TestNothingSlipsThrough(t *testing.T) {
	key, more := "ghp_"+"0123456789abcdefABCDEF0123456789abcd", strings.Repeat("y", 9000)
	c := start(t, wrapped(t.TempDir(), sick("none", "")...)...)
	for _, k := range [][2]string{
		{`{"content":[{"type":"text","text":"ok"}],"structuredContent":{"token":"` + key + `"}}`, `\"token\"`},
		{`{"content":[{"type":"text","text":"ok"}],"_meta":{"t":"` + key + `"}}`, "ok"},
		{`{"content":[{"type":"text","text":"{\"a\":\"x\"}] ` + key + `"}],"structuredContent":{"a":"x"}}`, "] "},
		{`{"content":[{"type":"text","text":"` + key + `"}],"Content":[{"text":"x"}]}`, "masked"},
		{`{"content":[{"type":"text","text":"\u001b[31mred"}],"structuredContent":{"rows":[1,2,3]}}`, `\"rows\":[1,2,3]`},
		{`{"content":[{"type":"image","data":"#","mimeType":"a/b"},{"type":"text","text":"rest"}]}`, "rest"},
		{`{"content":[{"type":"image","data":"aGVsbG8="}]}`, "is stored as obs:"},
		{`{"content":[{"type":"text","text":"ok"}],"more":"` + more + `"}`, "is stored as obs:"},
		{`{"content":[]}`, `"content":[]`},
	} {
		got := c.call("raw", `{"result":`+k[0]+`}`)
		if strings.Contains(got, key) || !strings.Contains(got, k[1]) {
			t.Errorf("%.200s: %.500s\nwant %s", k[0], got, k[1])
		}
	}
}

// A server that never answers a list holds up nothing else.
func TestServerThatHangsInLists(t *testing.T) {
	inParallel(t)
	c := start(t, wrapped(t.TempDir(), sick("hangs in lists", "")...)...)
	expect.Contains(t, c.request("prompts/list", "{}"), `"prompts":[`)
}

// Progress is passed on, the last value too.
func TestProgress(t *testing.T) {
	c := start(t, wrapped(t.TempDir(), sick("progress", "")...)...)
	c.begin("tools/call", `{"name":"echo","arguments":{},"_meta":{"progressToken":"p"}}`)
	for _, at := range []string{"0", "28", "29", "100"} {
		expect.Contains(t, c.line(), `"progress":`+at+`,"total":100`)
	}
}

// refused returns the answer to initialize, and the log.
func refused(t *testing.T, words []string) (answer, log string) {
	c := exec.CommandContext(t.Context(), words[0], words[1:]...)
	c.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + hello + "}\n")
	var logs strings.Builder
	c.Stderr = &logs
	out, err := c.Output()
	if err != nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), `"error"`) {
		t.Errorf("%v: %s\n%s", err, out, &logs)
	}
	return string(out), logs.String()
}

// A server that cannot be used is one clear error.
func TestUnusableServers(t *testing.T) {
	for fault, want := range map[string]string{
		"ends at once": "the server has ended",
		"no tools":     `the result has no member`,
		"newer":        "2099-01-01",
	} {
		if answer, _ := refused(t, wrapped(t.TempDir(), sick(fault, "")...)); !strings.Contains(answer, want) {
			t.Errorf("%s: %s", fault, answer)
		}
	}
	c := start(t, wrapped(t.TempDir(), sick("endless pages", "")...)...)
	c.request("tools/list", "{}")
	c.end()
	expect.Contains(t, c.errs.String(), "its cursor does not advance")
	words := wrapped(t.TempDir(), "no-such-server")
	out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "executable file not found") {
		t.Errorf("absent: %v: %s", err, out)
	}
}

// processesWith returns the command lines of the processes that have a text in theirs, by process id.
func processesWith(mark string) map[int]string {
	all := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		b, err := os.ReadFile(f)
		if err == nil && bytes.Contains(b, []byte(mark)) && pid != os.Getpid() {
			all[pid] = string(bytes.ReplaceAll(b, []byte{0}, []byte(" ")))
		}
	}
	return all
}
