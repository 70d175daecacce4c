package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
)

type man struct{}

// Run writes the manual page of the program, made of the texts of --help: all commands with their flags and examples,
// then the settings by group.
func (man) Run(w *cli.Streams, parser *kong.Kong) error {
	var b strings.Builder
	_, about, _ := strings.Cut(description, "\n\n")
	fmt.Fprintf(&b, ".TH MCP\\-FUNNEL 1 \"\" \"mcp\\-funnel %s\" \"User Commands\"\n", versionText())
	b.WriteString(".SH NAME\nmcp\\-funnel \\- an MCP server whose tools never flood a model's context\n")
	b.WriteString(".SH SYNOPSIS\n.B mcp\\-funnel\n[COMMAND] [DIR...] [SETTINGS]\n")
	b.WriteString(".SH DESCRIPTION\n" + roff(about) + "\n.SH COMMANDS\n")
	for _, n := range parser.Model.Leaves(true) {
		withoutAliases(n)
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff(n.Path()), roff(n.Help))
		if n.Detail != "" {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(n.Detail))
		}
		for _, arg := range n.Positional {
			fmt.Fprintf(&b, ".TP\n%s\n%s\n", roff(arg.Summary()), roff(arg.Help))
		}
		for _, f := range n.Flags {
			writeFlag(&b, f)
		}
	}
	fmt.Fprintf(&b, ".SH SETTINGS\n%s\n", roff(strings.TrimSpace(precedence)))
	group := ""
	for _, f := range parser.Model.Flags {
		if f.Group != nil && f.Group.Title != group {
			group = f.Group.Title
			fmt.Fprintf(&b, ".SS %s\n", roff(strings.TrimSuffix(group, ":")))
		}
		writeFlag(&b, f)
	}
	b.WriteString(".SH EXIT STATUS\n0: done. 1: failed, not whole, or not found. 2: wrong usage.\n")
	_, err := fmt.Fprint(w.Out, b.String())
	return err
}

func writeFlag(b *strings.Builder, f *kong.Flag) {
	if !f.Hidden {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.String()), roff(helpText(f.Value)))
	}
}

// roff escapes a text for man: backslashes, what must stay ASCII so that it can be pasted, what is not, and lines that
// would be requests.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`,
		"…", "...").Replace(text)
	text = regexp.MustCompile(`[^\x00-\x7f]`).ReplaceAllStringFunc(text, func(c string) string {
		return fmt.Sprintf(`\[u%04X]`, []rune(c)[0])
	})
	return `\&` + strings.ReplaceAll(text, "\n", "\n"+`\&`)
}
