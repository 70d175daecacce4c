package clientconfig

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The commands of this program that are hooks.
const (
	toolHook  = "hook"
	startHook = "hook session-start"
)

// hookKeys returns the keys of the groups of hooks that a command belongs to, and what its group matches: it gets the
// outputs of these tools, or runs when the model may have lost what it saw.
func hookKeys(command string) (keys []string, matcher string) {
	if strings.Contains(command, " "+startHook) {
		return []string{"hooks", "SessionStart"}, "compact|resume"
	}
	return []string{"hooks", "PostToolUse"}, "Bash|Grep|WebFetch|Read|mcp__.*"
}

// sameHook reports whether two commands are hooks for the same event.
func sameHook(a, b string) bool {
	return strings.Contains(a, " "+startHook) == strings.Contains(b, " "+startHook)
}

// hookLine returns the command of a hook, which a shell reads. A client with the hook has the server too, and both
// have the same settings: otherwise the server does not find what the hook stores.
func hookLine(self string, settings []string, hook string) string {
	line := ""
	for _, word := range append([]string{self}, settings...) {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$&;()<>|*?[]#~`!{}") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		line += word + " "
	}
	return line + hook + " --configured"
}

// hookWords returns the words of a line that runs the hook of this program, at this place or another, and nothing else:
// a line with other commands is its user's. Otherwise it returns nil. Variables in the words are left out.
func hookWords(line, self string) (words []string) {
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
	if i := slices.Index(words, "hook"); i <= 0 || !isOwn(words[0], self) ||
		i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") && "hook "+words[i+1] != startHook {
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
func isConfigured(command, self string) bool {
	words := hookWords(command, self)
	return len(words) > 0 && words[0] == self && slices.Contains(words, "--configured")
}

// addHook adds a command as docs/HOOK.md shows it.
func (d *document) addHook(command string) error {
	keys, matcher := hookKeys(command)
	hooks := []any{map[string]any{"type": "command", "command": command, "timeout": 10}}
	var value any = map[string]any{"matcher": matcher, "hooks": hooks}
	if below(d.value, keys...) == nil {
		value = []any{value}
	}
	return d.put(keys, value)
}

// removeHook takes a command out of the hooks, and its group if that holds nothing else.
func (d *document) removeHook(command string) {
	keys, _ := hookKeys(command)
	for g, all := range d.hooks(keys) {
		i := slices.Index(all, command)
		groups, list := "/"+strings.Join(keys, "/"), fmt.Sprintf("/%d/hooks", g)
		if i >= 0 && len(all) == 1 {
			remove(d.root.Find(groups), g)
			return
		} else if i >= 0 {
			remove(d.root.Find(groups+list), i)
			return
		}
	}
}

// hooks returns the commands of each group of hooks.
func (d *document) hooks(keys []string) (all [][]string) {
	groups, _ := below(d.value, keys...).([]any)
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
