package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestGrammarOfOneCommand compares the grammar with one command with that of all: the same settings, and that command.
func TestGrammarOfOneCommand(t *testing.T) {
	model := func(more ...kong.Option) *kong.Application {
		exited := -1
		parser, err := newParser(&commands{}, io.Discard, io.Discard, &exited, more...)
		expect.Must(t, err)
		return parser.Model
	}
	flags := func(n *kong.Node) (all []string) {
		for _, f := range n.Flags {
			all = append(all, f.String()+" "+strings.Join(f.Envs, " ")+" "+f.Default)
		}
		return all
	}
	whole := model()
	for _, want := range whole.Children {
		args := []string{want.Name}
		others := otherCommands(args)
		if want.Hidden != (others == "") {
			t.Errorf("%s: %q", want.Name, others)
		}
		if want.Hidden {
			continue
		}
		one := model(kong.IgnoreFields(others))
		if diff := cmp.Diff(flags(whole.Node), flags(one.Node)); diff != "" {
			t.Errorf("%s: settings (-all +one) %s", want.Name, diff)
		}
		found := 0
		for _, got := range one.Children {
			if got.Name == want.Name {
				found++
				if diff := cmp.Diff(flags(want), flags(got)); diff != "" {
					t.Errorf("%s: (-all +one) %s", want.Name, diff)
				}
			}
		}
		if found != 1 || len(one.Children) > 2 || one.DefaultCmd == nil || one.DefaultCmd.Name != "serve" {
			t.Errorf("%s: %d of %d commands", want.Name, found, len(one.Children))
		}
	}
	for line, want := range map[string]string{
		"": "", "--root x": "", "--root x call find": "Call", "--root check": "Check", "call check": "Call",
	} {
		others := regexp.MustCompile(otherCommands(strings.Fields(line)))
		for _, name := range []string{"Serve", "Call", "Check", "Hook", "Complete"} {
			if got := others.MatchString("commands." + name); got != (name != "Serve" && name != want) {
				t.Errorf("%q: %s is left out: %t", line, name, got)
			}
		}
	}
	for _, args := range [][]string{{"nope"}, {"obs"}, {"complete"}} {
		if got := otherCommands(args); got != "" {
			t.Errorf("%q: %s", args, got)
		}
	}
}
