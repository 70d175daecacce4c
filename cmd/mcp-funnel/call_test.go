package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/words"
)

// Arguments that are not taken are wrong usage; a tool that says no has failed.
func TestCallExitCodes(t *testing.T) {
	for _, k := range []struct {
		args []string
		code int
	}{
		{[]string{"find"}, done},
		{[]string{"nosuch"}, usage},
		{[]string{"slice", "nosuch=1"}, usage},
		{[]string{"slice", "--json", "nosuch=1"}, usage},
		{[]string{"slice"}, usage},
		{[]string{"slice", `{"source":1}`}, usage},
		{[]string{"slice", `{"source"`}, usage},
		{[]string{"slice", "source=nosuch"}, usage},
		{[]string{"slice", "source=nosuch", "lines=0"}, usage},
		{[]string{"slice", "source=nosuch", "lines=5-2"}, usage},
		{[]string{"slice", "source=nosuch", "lines=5"}, failed},
		{[]string{"find", "newer=yesterday"}, usage},
		{[]string{"find", "larger=5XB"}, usage},
		{[]string{"find", "glob={a"}, usage},
		{[]string{"find", "limit=-1"}, usage},
		{[]string{"find", "type=bogus"}, usage},
		{[]string{"find", "path=nosuch"}, failed},
		{[]string{"search", "pattern=(x"}, usage},
		{[]string{"search", "pattern=x", "glob={a"}, usage},
		{[]string{"grep", "source=nosuch", "pattern=(x"}, usage},
		{[]string{"grep", "source=nosuch", "pattern=x"}, failed},
		{[]string{"jq", "source=nosuch", "filter=.["}, usage},
		{[]string{"jq", "source=nosuch", "filter=."}, failed},
		{[]string{"jq", "source=mcp-funnel/call_test.go", "filter=nosuch", "text=true", "--root=."}, usage},
		{[]string{"jq", "source=mcp-funnel/call_test.go", "filter=$nosuch", "text=true", "--root=."}, usage},
		{[]string{"jq", "source=mcp-funnel/call_test.go", "filter=tojson|error", "text=true", "--root=."}, failed},
		{[]string{"read", "path="}, usage},
		{[]string{"read", "path=nosuch"}, failed},
		{[]string{"read", "path=nosuch", "--json"}, failed},
	} {
		code, out, complaints := try(t, append([]string{"call"}, k.args...)...)
		if code != k.code || code != done && out+complaints == "" {
			t.Errorf("%v: code %d: %s%s", k.args, code, out, complaints)
		}
	}
}

// No advice is given that would be refused.
func TestANumberBelowZeroGetsNoWorseAdvice(t *testing.T) {
	if code, _, said := try(t, "--large-lines", "-4"); code != usage || strings.Contains(said, "perhaps") ||
		!strings.Contains(said, "no number below 0") {
		t.Errorf("code %d: %s", code, said)
	}
	pattern := "pattern=" + strings.Repeat("x", 66_000)
	if code, said, _ := try(t, "call", "search", pattern); code != usage || strings.Contains(said, "literal") {
		t.Errorf("code %d: %.300s", code, said)
	}
}

func TestCallHelpNamesTheArguments(t *testing.T) {
	_, all, _ := try(t, "call", "--help")
	for _, tool := range catalog() {
		at := strings.Index(all, "\n"+tool.Name+": "+tool.Description+"\n")
		if at < 0 {
			t.Errorf("%s is not explained: %s", tool.Name, all)
			continue
		}
		rest := all[at:]
		for _, rule := range tool.Rules { // above the arguments
			before, after, found := strings.Cut(rest, "\n  "+rule+"\n")
			if rest = "\n" + after; !found || strings.Contains(before, "Arguments of "+tool.Name) {
				t.Errorf("%s lacks the rule %q", tool.Name, rule)
			}
		}
	}
	pattern, glob := strings.Index(all, "\n  pattern (required)"), strings.Index(all, "\n  glob\n")
	if allOf := strings.Index(all, "\n  all\n"); pattern < 0 || pattern > glob || glob > allOf {
		t.Errorf("the arguments are not in the order of the schema: %s", all)
	}
	if _, out, _ := try(t, "call", "slice", "--help"); !strings.Contains(
		out, "Arguments of slice:\n  source (required)\n",
	) || strings.Contains(out, "ignore_case") {
		t.Errorf("of one: %s", out)
	}
}

// Each argument says what it is, what it takes and what it is when it is left out; a default that is one of some
// values is one.
func TestCallHelpSaysWhatEachArgumentIs(t *testing.T) {
	for _, tool := range catalog() {
		_, out, _ := try(t, "call", tool.Name, "--help")
		var schema struct {
			Properties map[string]struct {
				Type string
				Enum []string
			}
			Required []string
		}
		expect.Must(t, json.Unmarshal(tool.Schema, &schema))
		for name, p := range schema.Properties {
			help := tool.Help[name]
			if len(help) < 10 || !strings.Contains(out, help) {
				t.Errorf("%s: %s has no help, or it is not shown: %q", tool.Name, name, help)
			}
			if len(p.Enum) > 0 && !strings.Contains(out, help+" One of "+strings.Join(p.Enum, ", ")+".") {
				t.Errorf("%s: %s takes %q, which is not said", tool.Name, name, p.Enum)
			}
			_, fallback, told := strings.Cut(help, "Default: ")
			fallback = strings.TrimSuffix(fallback, ".")
			if (p.Type == "boolean" || len(p.Enum) > 0 || p.Type == "integer") && !told {
				t.Errorf("%s: %s has no default", tool.Name, name)
			}
			if len(p.Enum) > 0 && !slices.Contains(p.Enum, fallback) && fallback != "every type" {
				t.Errorf("%s: the default %q of %s is none of %q", tool.Name, fallback, name, p.Enum)
			}
		}
		if len(tool.Help) != len(schema.Properties) {
			t.Errorf("%s: help of %d arguments, %d taken", tool.Name, len(tool.Help), len(schema.Properties))
		}
	}
}

// What a help page shows can be pasted.
func TestHelpOfObservationsCanBePasted(t *testing.T) {
	for _, words := range [][]string{{"observations"}, {"obs"}, {"observations", "list"}} {
		if _, out, _ := try(t, append(words, "--help")...); !strings.Contains(out, "mcp-funnel observations") ||
			strings.Contains(out, "(obs)") {
			t.Errorf("%v: %s", words, out)
		}
	}
}

// call without a tool prints the instructions and a line for each tool.
func TestCallWithoutAToolExplainsThem(t *testing.T) {
	code, out, said := try(t, "call")
	if code != done || said != "" || !strings.HasPrefix(out, prompts.Instructions("")+"\n") {
		t.Errorf("code %d: %s%s", code, out, said)
	}
	for _, tool := range catalog() {
		expect.Has(t, out, fmt.Sprintf("\n  %-8s%s\n", tool.Name, tool.Description), "no line for %s", tool.Name)
	}
}

// call and its help show the tools that --toolsets offers, and the names of several roots.
func TestHelpShowsToolsetsAndRoots(t *testing.T) {
	c, top := newCommandLine(t), t.TempDir()
	c.root = filepath.Join(top, "root")
	one, two := filepath.Join(top, "one"), filepath.Join(top, "two")
	for _, dir := range []string{c.root, one, two} {
		expect.Must(t, os.Mkdir(dir, 0o700))
	}
	const roots = "Roots: root, one, two. A path begins with the name of its root, unless only one root has it."
	for _, words := range [][]string{{"call"}, {"call", "--help"}} {
		given := append([]string{"--root", one, "--root", two, "--toolsets", "core,shell"}, words...)
		if _, out, _ := c.run(given...); !strings.Contains(out, "contained: roots") || !strings.Contains(out, roots) {
			t.Errorf("%v: %s", given, out)
		}
		if _, out, _ := try(t, words...); strings.Contains(out, "contained: roots") || strings.Contains(out, "Roots: ") {
			t.Errorf("%v: %s", words, out)
		}
	}
	if _, out, _ := try(t, "call", "run", "--help"); !strings.Contains(out, "Arguments of run:") {
		t.Errorf("no help of run: %s", out)
	}
	const elsewhere = "the tool run is in the toolset shell: offer it with --toolsets core,shell"
	c.expect(usage, "", elsewhere, "call", "run", "command=ls")
}

// A command that outlives the slice of a call is waited for: no later process could continue it.
func TestCallWaitsForACommand(t *testing.T) {
	code, out, said := try(
		t, "--toolsets", "all", "--sandbox", "off", "--slice", "100ms", "--call-timeout", "100ms", "call",
		"run", "command=sleep 1; echo done",
	)
	if code != done || out != "done\n" {
		t.Errorf("%d: %s%s", code, out, said)
	}
}

// jq's help has the records of each kind in the words of the kind, and the limits of the language.
func TestHelpOfJQNamesRecords(t *testing.T) {
	_, out, _ := try(t, "call", "jq", "--help")
	for _, k := range kinds.All {
		line := "\n    " + string(k.Name) + ": " + k.RecordIs
		if strings.Contains(out, line) != (k != kinds.Binary) || !strings.Contains(out, k.RecordNote) {
			t.Errorf("%s: %s", k.Name, out)
		}
	}
	expect.Contains(t, out, "RE2, without look-ahead", `split("\n…")`, "keys of objects come out sorted")
}

// An argument that takes several strings may be given several times, one string or a JSON array each.
func TestCallTakesAListSeveralTimes(t *testing.T) {
	for _, c := range []struct {
		tool  string
		words []string
		want  string
	}{
		{"search", []string{"pattern=x", "glob=*.go"}, `{"glob":"*.go","pattern":"x"}`},
		{"search", []string{"pattern=x", "glob=*.go", "glob=!*_test.go"}, `{"glob":["*.go","!*_test.go"],"pattern":"x"}`},
		{"search", []string{"glob=a", `glob=["b","c"]`, "glob=d"}, `{"glob":["a","b","c","d"]}`},
		{"search", []string{"glob=[ab]", "glob=7"}, `{"glob":["[ab]","7"]}`},
		{"jq", []string{"source=a.json", "source=b.json"}, `{"source":["a.json","b.json"]}`},
	} {
		i := slices.IndexFunc(catalog(), func(t tools.Tool) bool { return t.Name == c.tool })
		if got, err := words.Parse(catalog()[i], c.words); err != nil || string(got) != c.want {
			t.Errorf("%s %q: %s, %v, want %s", c.tool, c.words, got, err, c.want)
		}
	}
	newCommandLine(t).expect(usage, "", "pattern= is given twice", "call", "search", "pattern=a", "pattern=b")
}

// A word without = is the only required argument; elsewhere the error names the argument that was probably meant.
func TestCallTakesABareWord(t *testing.T) {
	for _, c := range []struct {
		words []string // the tool and its arguments
		want  string   // the arguments, or what the error says
	}{
		{[]string{"read", "README.md"}, `{"path":"README.md"}`},
		{[]string{"search", "path=src", "TODO"}, `{"path":"src","pattern":"TODO"}`},
		{[]string{"search", "12"}, `{"pattern":"12"}`},
		{[]string{"search", ""}, `{"pattern":""}`},
		{[]string{"slice", "go.mod", "lines=1-5"}, `{"lines":"1-5","source":"go.mod"}`},
		{[]string{"read", "a", "b"}, `"b" is not KEY=VALUE, and path= is given already; arguments of read: path`},
		{[]string{"read", "path=a", "b"}, `"b" is not KEY=VALUE, and path= is given already`},
		{[]string{"read", "a", "path=b"}, `"a" is not KEY=VALUE, and path= is given already`},
		{[]string{"grep", "func", "source=a.go"}, "write pattern=func (grep requires source and pattern)"},
		{[]string{"search", "TODO", "all"}, `"all" is not KEY=VALUE; write all=true`},
		{[]string{"search", "TODO", "glob"}, `"glob" is not KEY=VALUE; write glob=VALUE`},
		{[]string{"grep", "a.go"}, `"a.go" is not KEY=VALUE; write source=a.go (grep requires source and pattern)`},
		{[]string{"grep", "source=a.go", "func"}, "write pattern=func (grep requires source and pattern)"},
		{[]string{"jq", "source=a", "filter=.", ".x"}, `".x" is not KEY=VALUE; write one of source=, filter=`},
		{[]string{"find", "src"}, `"src" is not KEY=VALUE; write path=src; arguments of find: `},
	} {
		i := slices.IndexFunc(catalog(), func(t tools.Tool) bool { return t.Name == c.words[0] })
		raw, err := words.Parse(catalog()[i], c.words[1:])
		got := string(raw)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q: %s, want %s", c.words, got, c.want)
		}
	}
	newCommandLine(t).expect(usage, "", "write path=src", "call", "find", "src")
}
