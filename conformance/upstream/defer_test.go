//go:build linux

package upstream_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// verbose returns the definition of a tool with a long description and one required argument.
func verbose(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"title":"T","description":"Does %[1]s.\nMore: %s","inputSchema":{"type":"object","properties":`+
		`{"text":{"type":"string","description":"What."}},"required":["text"]},"annotations":{"readOnlyHint":true},"_meta":{"a/b":1}}`,
		name, strings.Repeat(more, 60))
}

// deferring starts a server of three tools that lists definitions whole up to 500 tokens, and returns the client, what
// was called, and the command.
func deferring(t *testing.T, start func(testing.TB, ...string) *client, flag string, tools ...string) (
	c *client, called func() string, store string,
) {
	t.Helper()
	store, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	write(t, state, "["+strings.Join(tools, ",")+"]")
	write(t, state+".calls", "")
	words := wrapped(store, sick("none", state)...)
	at := slices.Index(words, "wrap") + 1
	c = start(t, slices.Insert(words, at, flag)...)
	return c, func() string { return string(expect.Value(os.ReadFile(state + ".calls"))(t)) }, store
}

// changed makes a call, and reports whether the client heard of a changed list meanwhile.
func changed(c *client, tool, args string) (answer string, changed bool) {
	id := c.begin("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	for {
		line := c.line()
		changed = changed || strings.Contains(line, "tools/list_changed")
		var m struct {
			ID     int
			Result json.RawMessage
		}
		expect.Must(c.t, json.Unmarshal([]byte(line), &m))
		if m.ID == id {
			return string(m.Result), changed
		}
	}
}

// A tool beyond the budget is listed by its name and a line. A right call works at once, a wrong one is answered with
// the definition and does not reach the server, and both put the definition into the list.
func TestDefer(t *testing.T) {
	inParallel(t)
	first, second, third := verbose("first", "word "), verbose("second", "word "), verbose("third", "word ")
	c, called, _ := deferring(t, start, "--defer=200", first, second, third)
	short := func(name string) string {
		return fmt.Sprintf(`{"description":"Does %s.","name":%[1]q,"title":"T","annotations":{"readOnlyHint":true},`+
			`"_meta":{"a/b":1},"inputSchema":{"type":"object"}}`, name)
	}
	is := func(name, want string) {
		t.Helper()
		if got := definitionOf(t, c.request("tools/list", "{}"), name); !sameJSON(t, got, want) {
			t.Errorf("%s is listed as %s\nnot %s", name, got, want)
		}
	}
	is("first", first)
	is("second", short("second"))
	is("third", short("third"))
	answer, heard := changed(c, "second", `{"txt":1}`)
	expect.Contains(t, answer, `"isError":true`, "which was not called", `\"required\":[\"text\"]`, "More: word ")
	expect.Equal(t, called(), "")
	if !heard {
		t.Error("no notification of the changed list")
	}
	is("second", second)
	is("third", short("third"))
	answer, heard = changed(c, "third", `{"text":"x"}`)
	expect.Contains(t, answer, `"x":1.50`)
	if expect.Equal(t, called(), "third\n"); !heard {
		t.Error("no notification of the changed list")
	}
	is("third", third)
	// A client that has not listed again still gets the definition; one in the list is the server's own matter.
	answer, heard = changed(c, "second", `{}`)
	if expect.Contains(t, answer, "which was not called"); heard {
		t.Error("the list has not changed again")
	}
	answer, _ = changed(c, "first", `{}`)
	expect.Contains(t, answer, `"x":1.50`)
}

// A definition over 2,000 characters is stored whole, like any large answer; a client of the stateless protocol gets
// the same; with room for all of them nothing is short.
func TestDeferredDefinitionThatIsLarge(t *testing.T) {
	inParallel(t)
	large := verbose("large", strings.Repeat("a longer text of it ", 4))
	for _, begin := range []func(testing.TB, ...string) *client{start, stateless} {
		c, called, store := deferring(t, begin, "--defer=1", large)
		expect.Contains(t, definitionOf(t, c.request("tools/list", "{}"), "large"), `"description":"Does large."`)
		answer := c.call("large", `{"text":7}`)
		expect.Contains(t, answer, `"isError":true`, "kept whole as obs:")
		id := observation.FindString(answer)
		cat := exec.CommandContext(t.Context(), binary, "--store", store, "observations", "cat", id)
		expect.Has(t, string(expect.Value(cat.Output())(t)), large)
		expect.Equal(t, called(), "")
		expect.Contains(t, c.call("large", `{"text":"7"}`), `"x":1.50`)
		c.end()
	}
	c, _, _ := deferring(t, start, "--defer=5000", large)
	if got := definitionOf(t, c.request("tools/list", "{}"), "large"); !sameJSON(t, got, large) {
		t.Errorf("%s\nnot %s", got, large)
	}
}

// What is approved is the whole definition: one that differs only where the list does not show it is held back.
func TestDeferredChangeIsHeldBack(t *testing.T) {
	inParallel(t)
	c, called, store := deferring(t, start, "--defer=1", verbose("one", "word "))
	key := regexp.MustCompile(`[0-9a-f]{12}`)
	shown := expect.Value(exec.CommandContext(t.Context(), binary, "--store", store, "upstream", "list").Output())(t)
	expect.Contains(t, c.call("one", `{"text":"x"}`), `"x":1.50`)
	state := c.cmd.Args[len(c.cmd.Args)-1]
	c.end()
	write(t, state, "["+verbose("one", "ward ")+"]")
	c = start(t, c.cmd.Args...)
	expect.Contains(t, c.call("one", `{"text":"x"}`), "the server has changed the definition of one since it was approved")
	expect.Equal(t, called(), "one\n")
	diff := exec.CommandContext(t.Context(), binary, "--store", store, "upstream", "diff", key.FindString(string(shown)))
	expect.Contains(t, string(expect.Value(diff.Output())(t)), "- ", "More: word", "+ ", "More: ward")
}

// What a server cost: its lists as they were listed in each session, and its calls. One whose lists took more than its
// outputs is to be dropped.
func TestCostsOfServers(t *testing.T) {
	inParallel(t)
	c, _, store := deferring(t, start, "--no-reference=x", verbose("used", "word "), verbose("unused", "word "))
	words := c.cmd.Args
	stats := func(flags ...string) string {
		all := slices.Concat([]string{"--store", store, "stats", "--servers"}, flags)
		return string(expect.Value(exec.CommandContext(t.Context(), binary, all...).Output())(t))
	}
	type cost struct {
		Server  string
		Schemas int
		Listed  struct{ Sessions, Tokens int }
		Calls   struct{ Calls int }
		Unused  []string `json:"never_used"`
		Drop    bool
	}
	costs := func() (all []cost) {
		expect.Must(t, json.Unmarshal([]byte(stats("--json")), &all))
		return all
	}
	c.request("tools/list", "{}")
	c.request("tools/list", "{}")
	c.call("used", `{"text":"x"}`)
	c.end()
	one := costs()[0]
	if one.Listed.Sessions != 1 || one.Listed.Tokens != one.Schemas || one.Schemas < 200 || one.Calls.Calls != 1 ||
		!slices.Equal(one.Unused, []string{"unused"}) || !one.Drop {
		t.Errorf("%+v", one)
	}
	c = start(t, slices.Insert(slices.Clone(words), slices.Index(words, "wrap")+1, "--defer=1")...)
	c.request("tools/list", "{}")
	c.call("used", fmt.Sprintf(`{"text":%q}`, strings.Repeat("much of it ", 500)))
	c.end()
	if two := costs()[0]; two.Listed.Sessions != 2 || two.Schemas > one.Schemas/2 || two.Drop ||
		two.Listed.Tokens != one.Listed.Tokens+two.Schemas {
		t.Errorf("%+v after %+v", two, one)
	}
	expect.Contains(t, stats(), one.Server, "never used: unused", "SAVED")
	if text := stats(); strings.Contains(text, "drop this") {
		t.Error(text)
	}
}
