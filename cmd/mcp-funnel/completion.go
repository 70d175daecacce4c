package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completion) Help() string {
	return `Examples:

  mcp-funnel completion bash > ~/.local/share/bash-completion/completions/mcp-funnel
  mcp-funnel completion zsh  > "${fpath[1]}/_mcp-funnel"
  mcp-funnel completion fish > ~/.config/fish/completions/mcp-funnel.fish`
}

// Run writes a script that completes commands, flags and the values of flags and
// arguments that have a fixed list. It is made from the command line's own model.
func (c *completion) Run(w *streams, k *kong.Kong) error {
	var b strings.Builder
	root := k.Model.Node
	switch c.Shell {
	case "bash":
		bash(&b, root)
	case "zsh":
		b.WriteString("#compdef mcp-funnel\nautoload -U +X bashcompinit && bashcompinit\n")
		bash(&b, root)
	case "fish":
		fish(&b, root)
	}
	_, err := fmt.Fprint(w.out, b.String())
	return err
}

// words is what may follow a command: its subcommands and flags, and those above it.
func words(n *kong.Node) []string {
	var out []string
	for _, c := range n.Children {
		if !c.Hidden {
			out = append(out, c.Name)
		}
	}
	for _, p := range n.Positional {
		for _, v := range p.EnumSlice() {
			if v != "" {
				out = append(out, v)
			}
		}
	}
	for _, level := range n.AllFlags(true) {
		for _, f := range level {
			out = append(out, "--"+f.Name)
			if f.Negated || f.Tag.Negatable != "" {
				out = append(out, "--no-"+f.Name)
			}
		}
	}
	return out
}

func walk(n *kong.Node, path []string, visit func(path []string, n *kong.Node)) {
	visit(path, n)
	for _, c := range n.Children {
		if !c.Hidden {
			walk(c, append(path[:len(path):len(path)], c.Name), visit)
		}
	}
}

func bash(b *strings.Builder, root *kong.Node) {
	b.WriteString(`_mcp_funnel() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${COMP_WORDS[i]}" in
`)
	walk(root, nil, func(path []string, _ *kong.Node) {
		if len(path) > 0 {
			fmt.Fprintf(b, "      \" %s\") path=\" %[1]s\" ;;\n", strings.Join(path, " "))
		}
	})
	b.WriteString("    esac\n  done\n  case \"$prev\" in\n")
	for _, f := range root.Flags {
		if values := f.EnumSlice(); len(values) > 0 {
			fmt.Fprintf(b, "    --%s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", f.Name, strings.Join(values, " "))
		} else if !f.IsBool() {
			fmt.Fprintf(b, "    --%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", f.Name)
		}
	}
	b.WriteString("  esac\n  case \"$path\" in\n")
	walk(root, nil, func(path []string, n *kong.Node) {
		key := ""
		if len(path) > 0 {
			key = " " + strings.Join(path, " ")
		}
		fmt.Fprintf(b, "    %q) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", key, strings.Join(words(n), " "))
	})
	b.WriteString("  esac\n}\ncomplete -o default -F _mcp_funnel mcp-funnel\n")
}

func fish(b *strings.Builder, root *kong.Node) {
	b.WriteString("complete -c mcp-funnel -f\n")
	walk(root, nil, func(path []string, n *kong.Node) {
		when := "__fish_use_subcommand"
		if len(path) > 0 {
			when = "__fish_seen_subcommand_from " + path[len(path)-1]
		}
		for _, c := range n.Children {
			if !c.Hidden {
				fmt.Fprintf(b, "complete -c mcp-funnel -n %s -a %s -d %s\n", quote(when), c.Name, quote(c.Help))
			}
		}
		for _, f := range n.Flags {
			scope := ""
			if len(path) > 0 {
				scope = " -n " + quote(when)
			}
			value := ""
			if list := f.EnumSlice(); len(list) > 0 {
				value = " -x -a " + quote(strings.Join(list, " "))
			} else if !f.IsBool() {
				value = " -r -F"
			}
			fmt.Fprintf(b, "complete -c mcp-funnel%s -l %s%s -d %s\n", scope, f.Name, value, quote(f.Help))
		}
	})
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }
