// Package prompts holds the prompts as embedded Markdown files.
//
// It knows nothing of MCP: package server lists and serves them.
package prompts

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

//go:embed *.md
var files embed.FS

// order is the order in which prompts are listed: every Markdown file here but instructions.md.
var order = []string{"director", "investigate-output"}

// maxValue is the longest value of an argument, in bytes: a few sentences describe a task, and a prompt with a whole
// document in it would flood the context.
const maxValue = 8 << 10

// Prompt is one prompt. The front matter of its file has its exported fields, in lower case.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	text                     string
}

// Argument of a prompt; its value replaces {{name}} in the text.
type Argument struct {
	Name, Description string
	Required          bool
}

// All returns the prompts in a fixed order. The caller owns the slice.
func All() []Prompt { return slices.Clone(load()) }

// Instructions returns the server's instructions for a client: at most 150 tokens.
func Instructions() string { return strings.TrimSpace(must(files.ReadFile("instructions.md"))) }

var load = sync.OnceValue(readAll)

// readAll panics on an invalid file: the files are part of the program, and a test reads them all.
func readAll() []Prompt {
	all := make([]Prompt, 0, len(order))
	for _, name := range order {
		p, err := parse(must(files.ReadFile(name + ".md")))
		if err == nil && p.Name != name {
			err = fmt.Errorf("its name is %q", p.Name)
		}
		if err != nil {
			panic("prompts: " + name + ".md: " + err.Error())
		}
		all = append(all, p)
	}
	return all
}

func must(b []byte, err error) string {
	if err != nil {
		panic("prompts: " + err.Error())
	}
	return string(b)
}

// parse reads the front matter between two lines of three dashes, and the text after it.
func parse(file string) (Prompt, error) {
	rest, found := strings.CutPrefix(file, "---\n")
	if !found {
		return Prompt{}, errors.New("the first line must be ---")
	}
	front, text, found := strings.Cut(rest, "\n---\n")
	if !found {
		return Prompt{}, errors.New("the front matter must end with a line ---")
	}
	var p Prompt
	if err := yaml.UnmarshalWithOptions([]byte(front), &p, yaml.DisallowUnknownField()); err != nil {
		return Prompt{}, err
	}
	if p.text = strings.TrimSpace(text); p.Name == "" || p.Title == "" || p.Description == "" || p.text == "" {
		return Prompt{}, errors.New("name, title, description and a text are required")
	}
	for _, a := range p.Arguments {
		if !strings.Contains(p.text, "{{"+a.Name+"}}") {
			return Prompt{}, fmt.Errorf("argument %q does not stand in the text", a.Name)
		}
	}
	return p, nil
}

// Text fills in the arguments. A missing required argument or an unknown one is an error that names the valid ones. A
// line with {{name}} is left out if name has no value.
func (p Prompt) Text(args map[string]string) (string, error) {
	if err := p.check(args); err != nil {
		return "", err
	}
	// Replace in one pass: {{…}} inside a value is not replaced.
	var pairs, absent []string
	for _, a := range p.Arguments {
		mark := "{{" + a.Name + "}}"
		if value := strings.TrimSpace(args[a.Name]); value != "" {
			pairs = append(pairs, mark, value)
		} else {
			absent = append(absent, mark)
		}
	}
	fill := strings.NewReplacer(pairs...)
	var b strings.Builder
	for line := range strings.Lines(p.text) {
		if !slices.ContainsFunc(absent, func(mark string) bool { return strings.Contains(line, mark) }) {
			b.WriteString(fill.Replace(line))
		}
	}
	return strings.TrimSpace(b.String()), nil
}

func (p Prompt) check(args map[string]string) error {
	for name, value := range args {
		if !slices.ContainsFunc(p.Arguments, func(a Argument) bool { return a.Name == name }) {
			return fmt.Errorf("prompt %s: unknown argument %q; %s", p.Name, content.ClipEnd(name, 200), p.valid())
		}
		if len(value) > maxValue {
			return fmt.Errorf("prompt %s: argument %q is %d bytes long, at most %d; name a file or an observation instead",
				p.Name, name, len(value), maxValue)
		}
	}
	for _, a := range p.Arguments {
		if a.Required && strings.TrimSpace(args[a.Name]) == "" {
			return fmt.Errorf("prompt %s: argument %q is required; %s", p.Name, a.Name, p.valid())
		}
	}
	return nil
}

func (p Prompt) valid() string {
	if len(p.Arguments) == 0 {
		return "it takes no arguments"
	}
	var names []string
	for _, a := range p.Arguments {
		if a.Required {
			a.Name += " (required)"
		}
		names = append(names, a.Name)
	}
	return "valid arguments: " + strings.Join(names, ", ")
}
