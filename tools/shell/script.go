package shell

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// script is a parsed command. Hints use it; it never decides what a command may touch.
type script struct {
	programs []string // named by the command, each once
	hidden   bool     // it runs more that is not named
	fault    string   // why it does not parse; "": it does
}

// parse reads a command as the shell would, by the rules of bash, which are wider than those of sh.
func parse(command string) script {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	var s script
	if err != nil {
		s.fault = "the command does not parse: " + err.Error()
		if at, ok := errors.AsType[syntax.ParseError](err); ok {
			s.fault = fmt.Sprintf("the command does not parse: line %d, column %d: %s", at.Pos.Line(), at.Pos.Col(), at.Text)
		}
		if f == nil {
			return s
		}
	}
	functions := map[string]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			functions[n.Name.Value] = true
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			name := n.Args[0].Lit()
			s.hidden = s.hidden || slices.Contains([]string{"", ".", "source", "eval", "exec", "command"}, name)
			if name != "" && !functions[name] && !isBuiltin(name) && !slices.Contains(s.programs, name) {
				s.programs = append(s.programs, name)
			}
		}
		return true
	})
	return s
}

// isBuiltin reports whether the shell itself runs a command of this name.
func isBuiltin(name string) bool {
	return slices.Contains(strings.Fields(
		": . [ alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs kill printf pwd read "+
			"readonly return set shift source test times trap true type ulimit umask unalias unset wait local declare",
	), name)
}

// onlyQuotes reports whether all programs of the command print what they read, or parts of it: errors that they print
// are those of a file.
func (s script) onlyQuotes() bool {
	return len(s.programs) > 0 && s.fault == "" && !s.hidden && !slices.ContainsFunc(s.programs, func(name string) bool {
		return !slices.Contains(strings.Fields(
			"cat tac nl zcat bzcat xzcat zstdcat less more head tail grep egrep fgrep zgrep rg ag sed awk gawk mawk sort uniq "+
				"cut tr fold column paste wc strings jq yq ls find tee diff funnel",
		), path.Base(name))
	})
}

// allowed returns an error if the command names a program that the operator did not list. A script can hide what it
// runs, so this helps against mistakes only.
func (s script) allowed(programs []string) error {
	if len(programs) == 0 {
		return nil
	}
	for _, name := range s.programs {
		if name != programName && !slices.Contains(programs, name) && !slices.Contains(programs, path.Base(name)) {
			return fmt.Errorf("%s is not among the programs that the operator allows: %s (--allow-program)",
				name, strings.Join(programs, ", "))
		}
	}
	return nil
}
