package clientconfig

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hookOf is a hook of a client that this program adds.
type hookOf struct {
	event   string // of the client
	matcher string // of the group that it is in
	word    string // after "hook" on the command line; "": none
}

// hookKinds are all of them. The first gets the outputs of the client's own tools, the second runs when the model may
// have lost what it saw.
var hookKinds = []hookOf{
	{"PostToolUse", "Bash|Grep|WebFetch|Read|mcp__.*", ""},
	{"SessionStart", "compact|resume", "session-start"},
}

// keys are the keys of the groups of hooks for the same event.
func (h hookOf) keys() []string { return []string{"hooks", h.event} }

// kindOf returns the kind of an operation on a hook.
func kindOf(o operation) hookOf {
	return hookKinds[slices.IndexFunc(hookKinds, func(h hookOf) bool { return h.event == o.words[1] })]
}

// line returns the command of the hook, which a shell reads. A client with the hook has the server too, and both
// have the same settings: otherwise the server does not find what the hook stores.
func (h hookOf) line(self string, settings []string) string {
	line := ""
	for _, word := range append([]string{self}, settings...) {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$&;()<>|*?[]#~`!{}") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		line += word + " "
	}
	return line + strings.TrimSpace("hook "+h.word) + " --configured"
}

// words returns the words of a line that runs the hook of this program, at this place or another, and nothing else: a
// line with other commands is its user's. Otherwise it returns nil. Variables in the words are left out.
func (h hookOf) words(line, self string) (words []string) {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return nil
	}
	for _, w := range call.Args {
		words = append(words, unquoted(w.Parts))
	}
	i := slices.Index(words, "hook")
	if i <= 0 || !isOwn(words[0], self) {
		return nil
	}
	word := ""
	if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
		word = words[i+1]
	}
	if word != h.word {
		return nil
	}
	return words
}

// unquoted returns the text of the parts of a word.
func unquoted(parts []syntax.WordPart) (text string) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit: // other backslashes may be of a path of Windows
			text += strings.NewReplacer(`\'`, `'`, `\ `, ` `).Replace(part.Value)
		case *syntax.SglQuoted:
			text += part.Value
		case *syntax.DblQuoted:
			text += unquoted(part.Parts)
		}
	}
	return text
}

// isConfigured reports whether a command runs the hook of this program at this place, for a client with the server. It
// may have settings that a user gave it.
func (h hookOf) isConfigured(command, self string) bool {
	words := h.words(command, self)
	return len(words) > 0 && words[0] == self && slices.Contains(words, "--configured")
}

// addHook adds a command for an event, as docs/HOOK.md shows it.
func (d *document) addHook(h hookOf, command string) error {
	hooks := []any{map[string]any{"type": "command", "command": command, "timeout": 10}}
	var value any = map[string]any{"matcher": h.matcher, "hooks": hooks}
	if below(d.value, h.keys()...) == nil {
		value = []any{value}
	}
	return d.put(h.keys(), value)
}

// removeHook takes a command out of the hooks, and its group if that holds nothing else.
func (d *document) removeHook(h hookOf, command string) {
	for g, all := range d.hooks(h) {
		i := slices.Index(all, command)
		groups, list := "/"+strings.Join(h.keys(), "/"), fmt.Sprintf("/%d/hooks", g)
		if i >= 0 && len(all) == 1 {
			remove(d.root.Find(groups), g)
			return
		} else if i >= 0 {
			remove(d.root.Find(groups+list), i)
			return
		}
	}
}

// hooks returns the commands of each group of hooks for an event.
func (d *document) hooks(h hookOf) (all [][]string) {
	groups, _ := below(d.value, h.keys()...).([]any)
	for _, g := range groups {
		list, _ := below(g, "hooks").([]any)
		var commands []string
		for _, h := range list {
			command, _ := below(h, "command").(string)
			commands = append(commands, command)
		}
		all = append(all, commands)
	}
	return all
}
