package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/words"
)

// complete prints completions for the word at the cursor; the completion scripts call it.
type complete struct {
	Breaks string `env:"-" help:"Characters at which the shell ends a word; only the text after the last one is printed."`
	Line   string `arg:"" help:"The line up to the cursor."`
}

// candidate is one completion and its description.
type candidate struct{ word, about string }

// Run prints one candidate per line, with its description after a tab. It prints nothing where a file name is
// expected and on errors, because a shell has no place for them at its prompt.
func (c *complete) Run(w *cli.Streams, k *kong.Kong) error {
	all := shellWords(c.Line)
	if len(all) < 2 {
		return nil
	}
	typed := all[len(all)-1]
	cut := strings.LastIndexAny(typed, wordBreaks(c.Breaks)) + 1
	for _, found := range candidates(k, all[1:len(all)-1], typed) {
		if !strings.HasPrefix(found.word, typed) {
			continue
		}
		line := found.word[cut:]
		if found.about != "" {
			line += "\t" + content.Visible(content.Clip(strings.Join(strings.Fields(found.about), " "), 80), false)
		}
		if _, err := fmt.Fprintln(w.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// wordBreaks returns the word breaks of the shell that also occur within words of this program: "=" and ":".
func wordBreaks(given string) string {
	own := ""
	for _, c := range "=:" {
		if strings.ContainsRune(given, c) {
			own += string(c)
		}
	}
	return own
}

// candidates returns the completions after words, of which the last, typed, is incomplete.
func candidates(k *kong.Kong, words []string, typed string) []candidate {
	node := k.Model.Node
	var settings, positional []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		if flag := flagOf(node, word); flag != nil {
			settings = append(settings, word)
			if takesNext(flag, word) {
				if i++; i == len(words) {
					return values(flag, "")
				}
				settings = append(settings, words[i])
			}
			continue
		}
		if sub := childOf(node, word); sub != nil {
			node = sub
			continue
		}
		positional = append(positional, word)
	}
	name, _, valued := strings.Cut(typed, "=")
	if flag := flagOf(node, name); flag != nil && valued {
		return values(flag, name+"=")
	}
	if strings.HasPrefix(typed, "-") {
		return flags(node)
	}
	switch {
	case node.Name == "call" && len(positional) == 0:
		var out []candidate
		for _, t := range catalog() {
			out = append(out, candidate{t.Name, t.Title})
		}
		return out
	case node.Name == "call":
		return keys(positional[0], positional[1:], typed, settings)
	case node.Parent != nil && node.Parent.Name == "observations" && len(node.Positional) > 0:
		return ids(settings, typed, "", false)
	case node.Name == "undo":
		return ids(settings, typed, "", true)
	case len(node.Positional) > len(positional):
		return enums(node.Positional[len(positional)], "")
	}
	return children(node)
}

// takesNext reports whether the flag's value is the next word.
func takesNext(f *kong.Flag, word string) bool { return !f.IsBool() && !strings.Contains(word, "=") }

func flagOf(n *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	if !strings.HasPrefix(word, "--") {
		return nil
	}
	for _, f := range slices.Concat(n.AllFlags(false)...) {
		if f.Name == name || "no-"+f.Name == name && f.Tag.Negatable != "" {
			return f
		}
	}
	return nil
}

func childOf(n *kong.Node, word string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == word || slices.Contains(c.Aliases, word) {
			return c
		}
	}
	return nil
}

func children(n *kong.Node) (out []candidate) {
	for _, c := range n.Children {
		if !c.Hidden {
			out = append(out, candidate{c.Name, c.Help})
		}
	}
	return out
}

func flags(n *kong.Node) (out []candidate) {
	for _, f := range slices.Concat(n.AllFlags(true)...) {
		out = append(out, candidate{"--" + f.Name, f.Help})
		if f.Tag.Negatable != "" {
			out = append(out, candidate{"--no-" + f.Name, f.Help})
		}
	}
	return out
}

// values returns the possible values of a flag.
func values(f *kong.Flag, before string) (out []candidate) {
	if f.Name != "model" {
		return enums(f.Value, before)
	}
	for _, name := range tokens.Names() {
		out = append(out, candidate{before + name, ""})
	}
	return out
}

func enums(v *kong.Value, before string) (out []candidate) {
	for _, e := range v.EnumSlice() {
		if e != "" {
			out = append(out, candidate{before + e, ""})
		}
	}
	return out
}

func catalog() []tools.Tool { return toolsOf(nil) }

// keys returns the arguments of a tool that are not given yet, as KEY=, or the values of the one being typed.
func keys(tool string, given []string, typed string, settings []string) (out []candidate) {
	all := catalog()
	at := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Name == tool })
	if at < 0 {
		return nil
	}
	schema := words.SchemaOf(all[at])
	if key, _, valued := strings.Cut(typed, "="); valued {
		p := schema.Properties[key]
		switch {
		case p.Type == "boolean":
			out = []candidate{{word: key + "=true"}, {word: key + "=false"}}
		case key == "source" || key == "path":
			if out = ids(settings, typed, key+"="+observations.Prefix, false); out == nil {
				out = paths(settings, typed, key+"=")
			}
		}
		for _, e := range p.Enum {
			out = append(out, candidate{word: key + "=" + e})
		}
		return out
	}
	for key, p := range schema.Properties {
		if !slices.ContainsFunc(given, func(word string) bool {
			name, _, valued := strings.Cut(word, "=")
			return valued && name == key || !valued && key == schema.Sole // a word without = is its value
		}) {
			out = append(out, candidate{key + "=", p.Description})
		}
	}
	slices.SortFunc(out, func(a, b candidate) int { return strings.Compare(a.word, b.word) })
	return out
}

// paths returns the names below the roots of the settings on the line that begin with what was typed after before, as
// tools take them.
func paths(settings []string, typed, before string) (out []candidate) {
	c := parsed(settings)
	if c == nil {
		return nil
	}
	roots, err := c.OpenRoots(nil)
	if err != nil {
		return nil
	}
	defer roots.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, name := range roots.Complete(ctx, strings.TrimPrefix(typed, before), 200, c.Masker().Holds).Names {
		out = append(out, candidate{word: before + name})
	}
	return out
}

// parsed returns the settings of a line; nil if they are wrong.
func parsed(settings []string) *commands {
	var c commands
	exited := -1
	_, _, err := parse(&c, append([]string{"observations", "list"}, settings...), io.Discard, io.Discard, &exited)
	if err != nil || exited >= 0 {
		return nil
	}
	return &c
}

// ids returns the observation IDs in the store, newest first, each after the prefix before (default "obs:" if that
// was typed); with changes those that keep a change of a file. The store is the one of the settings on the line; it is
// not created if it does not exist.
func ids(settings []string, typed, before string, changes bool) (out []candidate) {
	switch {
	case before != "" && !strings.HasPrefix(typed, before):
		return nil // the word may still become a file name
	case before == "" && strings.HasPrefix(typed, observations.Prefix):
		before = observations.Prefix
	}
	c := parsed(settings)
	if c == nil {
		return nil
	}
	dir, err := c.StoreDir()
	if err != nil {
		return nil
	}
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	kept, err := c.OpenKept(nil)
	if err != nil {
		return nil
	}
	defer kept.Close()
	store := kept.Store
	list, _, err := c.Observations.list(store, false)
	if err != nil {
		return nil
	}
	if changes {
		list = onlyChanges(list)
	}
	now := time.Now()
	for _, o := range list[:min(len(list), 200)] {
		out = append(out, candidate{before + string(o.ID), describe(maskFields(&c.Settings, o), now)})
	}
	return out
}

// describe says what an observation is: "search, ndjson, 58.8 KiB, 3m ago: NAME".
func describe(o observations.Observation, now time.Time) string {
	text := fmt.Sprintf("%s, %s, %s, %s", o.Tool, o.Stats.Kind, cli.BytesText(o.Bytes), cli.AgeText(now.Sub(o.Created)))
	if name := label(o); name != "" {
		text += ": " + name
	}
	return text
}
