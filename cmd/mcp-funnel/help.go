package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/words"
)

const description = `Tools whose output never floods a model's context.

A large output is kept whole as an observation; the model gets a receipt (true totals, shape, head and tail, an ID) and works on it with jq, grep and slice.`

const precedence = `
Every setting is a flag, a variable (--large-lines is MCP_FUNNEL_LARGE_LINES) and a key of the YAML file
of --config (large-lines). A flag wins over a variable, and that over the file.
`

// printHelp prints all settings for the program, and for a command only its own flags: thirty flags that every
// command has would bury them.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	if selected != nil && selected != ctx.Model.DefaultCmd {
		for _, f := range ctx.Model.Flags {
			f.Hidden = f.Name != "help"
		}
		o.FlagsLast = false
		withoutAliases(selected)
	}
	if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
		return err
	}
	text := precedence
	if selected != nil && selected != ctx.Model.DefaultCmd {
		text = "\nSettings that every command has: mcp-funnel --help\n"
	}
	if selected != nil && selected.Name == "call" {
		text = toolArguments(ctx.Args, settingsOf(ctx)) + text
	}
	_, err := fmt.Fprint(ctx.Stdout, text)
	return err
}

// withoutAliases removes the aliases of a command and its parents: "observations (obs) list" could not be pasted.
func withoutAliases(n *kong.Node) {
	for ; n != nil; n = n.Parent {
		n.Aliases = nil
	}
}

// settingsOf returns the settings of a command line whose help is asked for: kong has not set them yet. Those that
// cannot be read have their defaults.
func settingsOf(ctx *kong.Context) *cli.Settings {
	_ = ctx.Reset()
	_ = ctx.Resolve()
	_, _ = ctx.Apply()
	if c, ok := ctx.Model.Target.Addr().Interface().(*commands); ok {
		return &c.Settings
	}
	return &cli.Settings{}
}

// toolsOf returns the tools of toolsets, by default core, to be listed only: none of them works.
func toolsOf(toolsets []string) []tools.Tool { return server.Catalog(server.Parts{Toolsets: toolsets}) }

// toolArguments explains the tool named in the line, else all tools that are offered: its description, its rules,
// and its arguments in the order of the schema, which is by use.
func toolArguments(named []string, s *cli.Settings) string {
	catalog := toolsOf(s.ToolsetNames())
	all := toolsOf(server.Toolsets)
	if i := slices.IndexFunc(all, func(t tools.Tool) bool { return slices.Contains(named, t.Name) }); i >= 0 {
		catalog = all[i : i+1]
	}
	var b strings.Builder
	for _, t := range catalog {
		if t.Toolset != tools.Core {
			offer := fmt.Sprintf("It is offered with --toolsets %s,%s.", tools.Core, t.Toolset)
			t.Rules = slices.Insert(slices.Clone(t.Rules), 0, offer)
		}
		b.WriteString("\n" + words.Help(t))
	}
	if roots := rootNames(s); roots != "" {
		fmt.Fprintf(&b, "\nRoots: %s. A path begins with the name of its root, unless only one root has it.\n", roots)
	}
	return b.String()
}

// rootNames names the roots if there are several.
func rootNames(s *cli.Settings) string {
	all, err := s.OpenRoots(nil)
	if err != nil {
		return ""
	}
	defer all.Close()
	return all.RootNames()
}

// overview is what call prints without a tool: the server's instructions and one line for each tool that is offered.
func overview(s *cli.Settings) string {
	var b strings.Builder
	b.WriteString(prompts.Instructions(rootNames(s)) + "\n\nTools:\n")
	for _, t := range toolsOf(s.ToolsetNames()) {
		fmt.Fprintf(&b, "  %-8s%s\n", t.Name, t.Description)
	}
	b.WriteString("\nmcp-funnel call --help explains all tools, mcp-funnel call TOOL --help one.\n")
	return b.String()
}

// helpText adds the default to a setting's help. Variables are not named: their names follow one rule, which the
// help states once.
func helpText(v *kong.Value) string {
	text := v.Help
	if v.HasDefault && v.Default != "" && !v.IsBool() && !strings.Contains(text, "efault") {
		text = fmt.Sprintf("%s Default: %s.", text, v.Default)
	}
	return text
}
