package investigate_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

var update = flag.Bool("update", false, "rewrite the golden texts")

// TestTexts compares what an agent is shown from the first order to the report with a golden text, ids and times aside.
func TestTexts(t *testing.T) {
	dir := project(t)
	files := map[string]string{}
	for i := range 45 {
		files["api/v1/h"+strings.Repeat("x", i%3)+string(rune('a'+i%26))+".go"] = "package v1\n\nfunc Handle() {}\n"
		files["big/part"+string(rune('a'+i%26))+strings.Repeat("y", i/26)+".go"] = "package big\n\nfunc Part() {}\n"
		files["cmd/a/f"+string(rune('a'+i%26))+strings.Repeat("z", i/26)+".go"] = "package main\n"
	}
	write(t, dir, files)
	b := in(t, dir)
	var all strings.Builder
	add := func(what, text string) {
		all.WriteString("=== " + what + "\n" + strings.TrimRight(unstable.ReplaceAllString(text, "_"), "\n") + "\n")
	}
	text, o := b.investigate(object{"goal": "what is sold?"})
	add("first", text)
	for n := 0; o.Order != "" && n < 20; n++ {
		step := o.Step
		text, o = b.answer(o, o.note("The directory %s is small: it has \"package\"."))
		add("after "+step, text)
	}
	for _, show := range []string{"status", "weak", "flags", "report"} {
		text := b.show(show)
		add(show, strings.ReplaceAll(text, dir, "/shop"))
	}
	path := filepath.Join("testdata", "texts.golden")
	if *update {
		expect.Must(t, os.WriteFile(path, []byte(all.String()), 0o600))
	}
	want := expect.Value(os.ReadFile(path))(t)
	expect.Same(t, strings.Split(all.String(), "\n"), strings.Split(string(want), "\n"),
		"the texts changed; if they should have, run with -update")
}
