// Package prompts holds the prompts as embedded Markdown files.
//
// Package server lists and serves them.
package prompts

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/continuation/intent"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

//go:embed *.md
var files embed.FS

// order is the order in which prompts are listed: every Markdown file here but instructions.md.
var order = []string{
	"director", "investigate-output", "intent", "tasks", "action", "parameters", "continue", "review", "investigate",
	"ask",
}

// The longest values of an argument, in bytes. A few sentences describe a task, and a prompt with a whole document in
// it would flood the context; a message is the user's own and may be longer.
const (
	MaxValue   = 8 << 10
	MaxFenced  = 64 << 10
	MaxMessage = 1 << 20
)

// Prompt is one prompt. The front matter of its file has its exported fields, in lower case.
type Prompt struct {
	Name, Title, Description string
	Toolset                  string       // whose tools it names; it is offered with them; "": always
	Shape                    intent.Level // the document that it asks for, whose shape replaces {{shape}}; "": none
	Arguments                []Argument
	text                     string
	sources                  map[string]string // obs:ID of the value of an argument; see Kept
}

// Argument of a prompt; its value replaces {{name}} in the text.
type Argument struct {
	Name, Description string
	Required          bool
	Fenced            bool // the value is put into a fence that it cannot leave, and may be the obs:ID of a small text
	Keep              bool // a long value is kept as an observation, and its receipt is the value
}

// limit returns the maximum number of bytes of the argument's value.
func (a Argument) limit() int {
	switch {
	case a.Keep:
		return MaxMessage
	case a.Fenced:
		return MaxFenced
	}
	return MaxValue
}

// source is the mark for the name under which the value of an argument is kept.
func (a Argument) source() string { return "{{" + a.Name + "_name}}" }

// All returns the prompts in a fixed order. The caller owns the slice.
func All() []Prompt { return slices.Clone(load()) }

// Instructions returns the server's instructions for a client: at most 150 tokens, and up to 80 more if several roots
// are named: "src, docs", or "" for one.
func Instructions(roots string) string {
	text := strings.TrimSpace(must(files.ReadFile("instructions.md")))
	if roots != "" {
		text += "\nRoots: " + roots + ". A path begins with the name of its root, unless only one root has it."
	}
	return text
}

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
	d := yaml.NewDecoder(strings.NewReader(front))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		return Prompt{}, err
	}
	if p.text = strings.TrimSpace(text); p.Name == "" || p.Title == "" || p.Description == "" || p.text == "" {
		return Prompt{}, errors.New("name, title, description and a text are required")
	}
	if p.Shape != "" {
		shape := intent.Shape(p.Shape)
		if shape == "" || !strings.Contains(p.text, shapeMark) {
			return Prompt{}, fmt.Errorf("shape %q is unknown, or the text has no %s", p.Shape, shapeMark)
		}
		p.text = strings.Replace(p.text, shapeMark, shape, 1)
	}
	for _, a := range p.Arguments {
		if !strings.Contains(p.text, "{{"+a.Name+"}}") {
			return Prompt{}, fmt.Errorf("argument %q does not stand in the text", a.Name)
		}
	}
	return p, nil
}

// shapeMark is replaced, in a prompt, by the shape of the document that it asks for.
const shapeMark = "{{shape}}"

// Kept returns the prompt with the name (obs:ID) under which the value of a fenced argument is kept.
func (p Prompt) Kept(argument, name string) Prompt {
	p.sources = maps.Clone(p.sources)
	if p.sources == nil {
		p.sources = map[string]string{}
	}
	p.sources[argument] = name
	return p
}

// fence returns a text between two fences, with its hidden characters escaped. The fences are longer than any run of
// backticks in the text, so no line of the text can end the block.
func fence(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	mark := strings.Repeat("`", longest+1)
	return mark + "\n" + content.Visible(text, false) + "\n" + mark
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
		value := strings.TrimSpace(args[a.Name])
		if value != "" && a.Fenced {
			value = fence(value)
		}
		for mark, value := range map[string]string{"{{" + a.Name + "}}": value, a.source(): p.sources[a.Name]} {
			if value != "" {
				pairs = append(pairs, mark, value)
			} else {
				absent = append(absent, mark)
			}
		}
	}
	fill := strings.NewReplacer(pairs...)
	var b strings.Builder
	blank := false // the line before was empty
	for line := range strings.Lines(p.text) {
		if slices.ContainsFunc(absent, func(mark string) bool { return strings.Contains(line, mark) }) ||
			blank && line == "\n" { // between two lines that were left out
			continue
		}
		blank = line == "\n"
		b.WriteString(fill.Replace(line))
	}
	return strings.TrimSpace(b.String()), nil
}

func (p Prompt) check(args map[string]string) error {
	for name := range args {
		if !slices.ContainsFunc(p.Arguments, func(a Argument) bool { return a.Name == name }) {
			return fmt.Errorf("prompt %s: unknown argument %q; %s", p.Name, content.ClipEnd(name, 200), p.valid())
		}
	}
	for _, a := range p.Arguments {
		if n := len(args[a.Name]); n > a.limit() {
			return fmt.Errorf(
				"prompt %s: argument %q is %d bytes long, at most %d; name a file or an observation instead",
				p.Name,
				a.Name,
				n,
				a.limit(),
			)
		}
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
