package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
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
		if code, out, complaints := try(t, append([]string{"call"}, k.args...)...); code != k.code || code != done &&
			out+complaints == "" {
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
	if _, out, _ := try(t, "call", "--help"); !strings.Contains(out, "  search   pattern* ") ||
		!strings.Contains(out, "  slice    source* ") {
		t.Errorf("of all: %s", out)
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
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Fatal(err)
		}
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
