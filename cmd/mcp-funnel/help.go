package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

const description = `Tools whose output never floods a model's context.

A large output is kept whole as an observation; the model gets a receipt (true totals, shape, head and tail, an ID) and works on it with jq, grep and slice.`

const precedence = `
Every setting is a flag, a variable (--large-lines is MCP_FUNNEL_LARGE_LINES) and a key of the YAML file
of --config (large-lines). A flag wins over a variable, and that over the file.
`

// printHelp prints all settings for the program, and for a command only what
// is its own: thirty flags that every command has would bury it.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	if selected != nil && selected != ctx.Model.DefaultCmd {
		for _, f := range ctx.Model.Flags {
			f.Hidden = f.Name != "help"
		}
		o.FlagsLast = false
	}
	if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
		return err
	}
	text := precedence
	if selected != nil && selected != ctx.Model.DefaultCmd {
		text = "\nSettings that every command has: mcp-funnel --help\n"
	}
	_, err := fmt.Fprint(ctx.Stdout, text)
	return err
}

// helpText adds a setting's default; the variables' names follow one rule and are told once.
func helpText(v *kong.Value) string {
	text := v.Help
	if v.HasDefault && v.Default != "" && !v.IsBool() && !strings.Contains(text, "efault") {
		text = fmt.Sprintf("%s Default: %s.", text, v.Default)
	}
	return text
}
