package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// At a terminal rm asks before it removes pinned observations or all; only y and yes agree.
func TestRemovingAsksAtATerminal(t *testing.T) {
	settings := settled(t)
	store, err := observations.OpenStore(observations.Options{Dir: settings[1], MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	r, err := store.Record(observations.Provenance{Owner: observations.Local, Tool: "keep"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte("a line\n")); err != nil {
		t.Fatal(err)
	}
	o, err := r.Commit(observations.Stats{Kind: "text", Ext: "txt"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Pin(observations.Local, o.ID, true); err != nil {
		t.Fatal(err)
	}
	id := string(o.ID)
	// If standard error is no terminal, the question would not be seen.
	_, program := terminal(t)
	var out, complaints strings.Builder
	words := append(append([]string{}, settings...), "observations", "rm", "--all")
	if code := run(t.Context(), words, program, &out, &complaints); code != usage ||
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
		code := make(chan int, 1)
		go func() {
			words := append(append([]string{}, settings...), "observations")
			code <- run(context.Background(), append(words, k.words...), program, &out, program)
		}()
		see(t, screen, regexp.MustCompile(k.asked+"$"))
		if _, err := screen.WriteString(k.answer); err != nil {
			t.Fatal(err)
		}
		if c := <-code; c != k.code || out.String() != k.out {
			t.Errorf("%v, %q: code %d, %q", k.words, k.answer, c, out.String())
		}
		var left strings.Builder
		_ = run(
			t.Context(),
			append(append([]string{}, settings...), "observations", "verify"),
			strings.NewReader(""),
			&left,
			&left,
		)
		if !strings.HasPrefix(left.String(), k.remaining) {
			t.Errorf("%v, %q: %s", k.words, k.answer, left.String())
		}
	}
}
