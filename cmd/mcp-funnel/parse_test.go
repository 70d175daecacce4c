package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestGrammarOfOneCommand compares the grammar with one command with that of all: the same settings, and that command.
func TestGrammarOfOneCommand(t *testing.T) {
	model := func(more ...kong.Option) *kong.Application {
		exited := -1
		parser := expect.Value(newParser(&commands{}, io.Discard, io.Discard, &exited, more...))(t)
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
		expect.Equal(t, want.Hidden, others == "", "%s: %q", want.Name, others)
		if want.Hidden {
			continue
		}
		one := model(kong.IgnoreFields(others))
		expect.Same(t, flags(one.Node), flags(whole.Node), "%s: settings (-all +one)", want.Name)
		found := 0
		for _, got := range one.Children {
			if got.Name == want.Name {
				found++
				expect.Same(t, flags(got), flags(want), "%s: (-all +one)", want.Name)
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
			expect.Equal(t, others.MatchString("commands."+name), name != "Serve" && name != want, "%q: %s is left out",
				line, name)
		}
	}
	for _, args := range [][]string{{"nope"}, {"obs"}, {"complete"}} {
		expect.Equal(t, otherCommands(args), "", "%q", args)
	}
}

// TestOptionalValue: the value of wrap --defer follows = or a space, and may be left out.
func TestOptionalValue(t *testing.T) {
	for line, want := range map[string]cli.Defer{
		"wrap -- x 7": 0, "wrap --defer -- x 7": 1000, "wrap --defer=300 -- x 7": 300, "wrap --defer 300 -- x 7": 300,
		"wrap --defer 300 x 7": 300, "wrap --defer x 7": 1000, "wrap --defer --observe x 7": 1000,
	} {
		exited, all := -1, commands{}
		parser := expect.Value(newParser(&all, io.Discard, io.Discard, &exited))(t)
		_, err := parser.Parse(strings.Fields(line))
		expect.OK(t, err)
		expect.Equal(t, all.Wrap.Defer, want, "%q", line)
		expect.Equal(t, strings.TrimPrefix(strings.Join(all.Wrap.Command, " "), "-- "), "x 7", "%q", line)
	}
}
