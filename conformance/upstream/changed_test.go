//go:build linux

package upstream_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// schema is the schema of the arguments of alpha, the tool that changes. The tools beside it stay.
const schema = `{"type":"object","properties":{"text":{"type":"string","description":"What."},` +
	`"n":{"type":"integer","maximum":10}},"required":["text"]}`

const alpha = `{"name":"alpha","title":"Alpha","description":"Adds a line.","inputSchema":` + schema +
	`,"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"A"},"_meta":{"a/b":1}}`

// beside are the definitions of tools that the server always has.
const beside = `{"name":"beta","description":"Stays.","inputSchema":{"type":"object"}},` +
	`{"name":"notify","inputSchema":{"type":"object"}},{"name":"lists","inputSchema":{"type":"object"}},` +
	`{"name":"exit","inputSchema":{"type":"object"}}`

// change is one way in which the definitions of a server change.
type change struct {
	name   string
	tools  string // what the server lists then
	before string // what it lists between, if there is a step more
	held   string // name of the tool that is held back: alpha, or a new one; "" if this is no change
}

// The times at which the definitions change.
const (
	betweenStarts = iota // of wrap
	inSession            // and the server says so
	restarted            // the server ends, and is started again in the same session
	times
)

// changes returns the kinds of change: those of testdata/changes.ndjson, where one text of the definition is replaced,
// and others.
func changes(t testing.TB) []change {
	swap := func(old, now string) string {
		if !strings.Contains(alpha, old) {
			panic(old)
		}
		return strings.Replace(alpha, old, now, 1) + "," + beside
	}
	both := func(first, second string) string { return first + "," + second + "," + beside }
	again := strings.Replace(alpha, "Adds a line.", "Sends all files.", 1)
	var all []change
	for _, c := range corpus.Rows[struct{ Name, Old, New, Held string }](t, "changes.ndjson") {
		all = append(all, change{c.Name, swap(c.Old, c.New), "", c.Held})
	}
	return append(all, []change{
		{"new tool", both(alpha, strings.Replace(alpha, `"alpha"`, `"omega"`, 1)), "", "omega"},
		{"new tool, a name of ours", both(alpha, strings.Replace(alpha, `"alpha"`, `"jq"`, 1)), "", "jq"},
		{"gone, and back changed", again + "," + beside, beside, "alpha"},
		{"duplicate name, the changed one first", both(again, alpha), "", "alpha"},
		{"duplicate name, the changed one last", both(alpha, again), "", ""},
		{"order of tools", beside + "," + alpha, "", ""},
		{"order of keys", `{"_meta":{"a/b":1},"inputSchema":` + schema + `,"outputSchema":{"type":"object"},` +
			`"annotations":{"title":"A","readOnlyHint":true},"description":"Adds a line.","title":"Alpha",` +
			`"name":"alpha"},` + beside, "", ""},
		{"back again", alpha + "," + beside, again + "," + beside, ""},
	}...)
}

// definitionOf returns the definition of a tool in an answer to tools/list, without what this program leaves out; "" if
// there is none.
func definitionOf(t *testing.T, list, name string) string {
	t.Helper()
	var l struct{ Tools []map[string]any }
	expect.Must(t, json.Unmarshal([]byte(list), &l), list)
	for _, tool := range l.Tools {
		if tool["name"] == name {
			delete(tool, "outputSchema")
			text, _ := json.Marshal(tool) // it came as JSON
			return string(text)
		}
	}
	return ""
}

// house is a server whose definitions change, and the store that remembers them.
type house struct {
	t            *testing.T
	state, store string
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, state: filepath.Join(t.TempDir(), "state"), store: t.TempDir()}
	h.lists(alpha + "," + beside)
	expect.Must(t, os.WriteFile(h.state+".calls", nil, 0o600))
	return h
}

// lists sets what the server lists from now on, by rename: it may read the file meanwhile.
func (h *house) lists(tools string) {
	h.t.Helper()
	err := os.WriteFile(h.state+".new", []byte("["+tools+"]"), 0o600)
	if err == nil {
		err = os.Rename(h.state+".new", h.state)
	}
	expect.Must(h.t, err)
}

func (h *house) start() *client {
	h.t.Helper()
	return start(h.t, wrapped(h.store, sick("none", h.state)...)...)
}

// calls returns how often the server got a call of a tool.
func (h *house) calls(tool string) (n int) {
	h.t.Helper()
	b := expect.Value(os.ReadFile(h.state + ".calls"))(h.t)
	for line := range strings.Lines(string(b)) {
		if line == tool+"\n" {
			n++
		}
	}
	return n
}

// announce lets the server say that its tools have changed, and waits until they were listed again.
func (h *house) announce(c *client) {
	h.t.Helper()
	before := c.call("lists", "{}")
	c.call("notify", "{}")
	for wait := 0; c.call("lists", "{}") == before; wait++ {
		if wait > 500 {
			h.t.Fatal("the tools are not listed again")
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // the list was sent; it is compared now
}

var approveCommand = regexp.MustCompile(`mcp-funnel --store \S+ (upstream approve [0-9a-f]+ alpha)\b`)

// try makes a change at a time, and returns what does not hold of the promise. The approval follows, which must let the
// tool through. With forget the store is another one after the change.
func (h *house) try(k change, when int, forget bool) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, k.name+": "+fmt.Sprintf(format, args...)) }
	c := h.start()
	approved := definitionOf(h.t, c.request("tools/list", "{}"), "alpha")
	for _, tools := range []string{k.before, k.tools} {
		if tools == "" {
			continue
		}
		h.lists(tools)
		switch when {
		case inSession:
			h.announce(c)
			continue
		case restarted:
			c.call("exit", "{}")
			continue
		}
		c.end()
		if forget {
			h.store = h.t.TempDir()
		}
		c = h.start()
	}
	if got := c.call("beta", "{}"); !strings.Contains(got, `"x":1.50`) {
		fail("a tool beside it: %s", got)
	}
	name := k.held
	if name == "" {
		name = "alpha"
	}
	before := h.calls(name)
	list := c.request("tools/list", "{}")
	if now := definitionOf(h.t, list, "alpha"); now != "" && now != approved {
		fail("listed as %s", now)
	}
	call := func(c *client) string {
		args, _ := json.Marshal(map[string]any{"name": name, "arguments": struct{}{}}) // plain values
		return c.request("tools/call", string(args))
	}
	refused := call(c)
	c.end()
	if k.held == "" {
		if h.calls(name) != before+1 {
			fail("this is no change, and the call was not passed on: %s", refused)
		}
		return wrong
	}
	if h.calls(name) != before {
		fail("the call was passed on: %s", refused)
	}
	var command []string
	if k.held == "alpha" {
		if m := approveCommand.FindStringSubmatch(refused); m != nil {
			command = strings.Fields(m[1])
		} else {
			fail("the answer has no command that approves it: %s", refused)
		}
	} else { // of a new tool nobody knows the name but the person who looks at the list
		if name != "jq" && definitionOf(h.t, list, name) != "" {
			fail("it is listed")
		}
		if key := regexp.MustCompile(`upstream diff ([0-9a-f]+)`).FindStringSubmatch(c.errs.String()); key != nil {
			command = []string{"upstream", "approve", key[1], name}
		} else {
			fail("the log has no command that shows it: %s", c.errs.String())
		}
	}
	if command == nil {
		return wrong
	}
	approve := exec.CommandContext(h.t.Context(), binary, append(command, "--yes")...)
	approve.Env = append(os.Environ(), "MCP_FUNNEL_STORE="+h.store, "MCP_FUNNEL_MIN_FREE=0")
	if out, err := approve.CombinedOutput(); err != nil {
		fail("%q: %v: %s", command, err, out)
	}
	c = h.start()
	defer c.end()
	if name == "jq" { // ours has the name
		name = "upstream_jq"
	}
	if got := call(c); h.calls(k.held) != before+1 && k.name != "name twice" { // which is never offered
		fail("approved, and not passed on: %s", got)
	}
	return wrong
}

// TestS29ChangedToolsAreHeldBack changes definitions of a server in every way, between two starts, in the middle of a
// session and by a restart of the server: what is listed stays as it was approved or is absent, and calls do not reach
// the server until the printed command approves the change. The control forgets what was approved.
func TestS29ChangedToolsAreHeldBack(t *testing.T) {
	inParallel(t)
	promise.OrdinaryRun(t)
	kinds := changes(t)
	proof := promise.Proof{Promise: "S29"}
	held := map[bool]int{}
	for i, k := range kinds {
		held[k.held != ""]++
		for when := range times {
			if !promise.Full() && when != i%times {
				continue
			}
			proof.Cases++
			if wrong := newHouse(t).try(k, when, false); len(wrong) > 0 {
				proof.Failures++
				t.Errorf("time %d: %s", when, strings.Join(wrong, "\n"))
			}
		}
	}
	for _, k := range kinds[:3] {
		if len(newHouse(t).try(k, betweenStarts, true)) > 0 {
			proof.Control++
		}
	}
	proof.Figures = fmt.Sprintf("%d kinds of change, and %d that are none; between starts, in a session, by a restart; "+
		"control: a fresh store", held[true], held[false])
	promise.Kept(t, proof)
}
