package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// At a terminal rm asks before it removes pinned observations or all; only y and yes agree.
func TestRemovingAsksAtATerminal(t *testing.T) {
	c := newCommandLine(t)
	store, _ := c.open()
	o := record(t, store, observations.Local, "a line\n")
	expect.Must(t, store.Pin(observations.Local, o.ID, true))
	id, settings := string(o.ID), []string{"--store", c.store, "--min-free", "0", "--root", c.root, "observations"}
	// If standard error is no terminal, the question would not be seen.
	_, program := terminal(t)
	var out, complaints strings.Builder
	if code := run(t.Context(), append(settings, "rm", "--all"), program, &out, &complaints); code != usage ||
		!strings.Contains(complaints.String(), "add --yes") {
		t.Errorf("code %d: %s%s", code, out.String(), complaints.String())
	}
	for _, k := range []struct {
		words          []string
		asked, answer  string
		code           int
		out, remaining string
	}{
		{[]string{"rm", id}, `obs:` + id + ` is pinned; remove it\? \[y/N\] `, "\n", failed, "", "1 of 1"},
		{[]string{"rm", id}, `remove it\? \[y/N\] `, "no\n", failed, "", "1 of 1"},
		{[]string{"rm", id}, `remove it\? \[y/N\] `, "\x04", failed, "", "1 of 1"}, // the end of input
		{[]string{"rm", "--all"}, `1 observation, 7 bytes, in .*, 1 pinned; remove all\? \[y/N\] `, "n\n", failed, "", "1 of 1"},
		{[]string{"rm", "--all"}, `remove all\? \[y/N\] `, "Yes\n", done, "removed 1 observation, 7 bytes\n", "0 of 0"},
	} {
		screen, program := terminal(t)
		var out strings.Builder
		code := start(context.Background(), program, &out, program, append(settings, k.words...)...)
		see(t, screen, regexp.MustCompile(k.asked+"$"))
		expect.Value(screen.WriteString(k.answer))(t)
		if c := <-code; c != k.code || out.String() != k.out {
			t.Errorf("%v, %q: code %d, %q", k.words, k.answer, c, out.String())
		}
		if _, left, _ := c.run("observations", "verify"); !strings.HasPrefix(left, k.remaining) {
			t.Errorf("%v, %q: %s", k.words, k.answer, left)
		}
	}
}
