// Package prompts holds the prompts, one Markdown file each, embedded.
//
// It does not speak MCP: server/ lists and serves what stands here.
package prompts

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed *.md
var files embed.FS

// order is the order in which prompts are listed: every Markdown file here but the instructions.
var order = []string{"director", "investigate-output"}

// maxValue is how long a value for an argument may be, in bytes: a task is told in a few
// sentences, and a prompt that carries a document would be the flood this server prevents.
const maxValue = 8 << 10

// Prompt is one prompt as listed.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	text                     string
}

// Argument of a prompt; its value stands in place of {{name}} in the text.
type Argument struct {
	Name, Description string
	Required          bool
}

// All lists the prompts in a fixed order. The slice is the caller's own.
func All() []Prompt { return slices.Clone(load()) }

// Instructions is what a client is told of the server at start: at most 150 tokens.
func Instructions() string { return instructions() }

var (
	load         = sync.OnceValue(readAll)
	instructions = sync.OnceValue(func() string { return strings.TrimSpace(must(files.ReadFile("instructions.md"))) })
)

// readAll panics on a bad file: the files are part of the program, and a test reads them all.
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

// parse reads front matter between two lines of three dashes, and the text below it.
func parse(file string) (Prompt, error) {
	rest, found := strings.CutPrefix(file, "---\n")
	if !found {
		return Prompt{}, errors.New("the first line must be ---")
	}
	front, text, found := strings.Cut(rest, "\n---\n")
	if !found {
		return Prompt{}, errors.New("the front matter must end with a line ---")
	}
	var head struct {
		Name        string `yaml:"name"`
		Title       string `yaml:"title"`
		Description string `yaml:"description"`
		Arguments   []struct {
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
			Required    bool   `yaml:"required"`
		} `yaml:"arguments"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(front), &head, yaml.DisallowUnknownField()); err != nil {
		return Prompt{}, err
	}
	p := Prompt{Name: head.Name, Title: head.Title, Description: head.Description, text: strings.TrimSpace(text)}
	if p.Name == "" || p.Title == "" || p.Description == "" || p.text == "" {
		return Prompt{}, errors.New("name, title, description and a text are required")
	}
	for _, a := range head.Arguments {
		if !strings.Contains(p.text, "{{"+a.Name+"}}") {
			return Prompt{}, fmt.Errorf("argument %q does not stand in the text", a.Name)
		}
		p.Arguments = append(p.Arguments, Argument(a))
	}
	return p, nil
}

// Text fills the arguments in. A missing required or an unknown one is an error that names the valid ones.
// A line that holds {{name}} is left out where name has no value.
func (p Prompt) Text(args map[string]string) (string, error) {
	if err := p.check(args); err != nil {
		return "", err
	}
	// One pass over the template: a value that holds {{…}} itself is not looked into again.
	var pairs []string
	var absent []string
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
			return fmt.Errorf("prompt %s: unknown argument %q; %s", p.Name, clip(name), p.valid())
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
	names := make([]string, len(p.Arguments))
	for i, a := range p.Arguments {
		names[i] = a.Name
		if a.Required {
			names[i] += " (required)"
		}
	}
	return "valid arguments: " + strings.Join(names, ", ")
}

// clip keeps what a caller gave us short in an error: at most 200 bytes.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "…"
}
