package shell

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// rootDir is a root: the name by which the tools know it, and the directory that commands see.
type rootDir struct {
	name, dir string
	root      *tree.Root
}

// has reports whether a path exists below the root, as the tools see it: no link leads out of it.
func (r rootDir) has(rel string) bool {
	_, err := r.root.Lstat(rel)
	return err == nil
}

func rootDirs(s source.Set) []rootDir {
	list := make([]rootDir, len(s.Roots))
	for i, name := range s.Labels() {
		list[i] = rootDir{name, s.Roots[i].Dir(), s.Roots[i]}
	}
	return list
}

// directories returns the directories of roots.
func directories(roots []rootDir) (dirs []string) {
	for _, r := range roots {
		dirs = append(dirs, r.dir)
	}
	return dirs
}

// variable returns the name of the variable with the root's directory: ROOT_my_app for my-app.
func (r rootDir) variable() string {
	return "ROOT_" + strings.Map(func(c rune) rune {
		if c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return c
		}
		return '_'
	}, r.name)
}

// rootVariables returns the variables that tell a command where the roots are: ROOTS, separated as in PATH, and one for
// each root.
func rootVariables(roots []rootDir) (env []string) {
	for _, r := range roots {
		env = append(env, r.variable()+"="+r.dir)
	}
	return append(env, "ROOTS="+strings.Join(directories(roots), string(filepath.ListSeparator)))
}

// describeRoots returns the directories of the roots; "" if there is only one.
func describeRoots(roots []rootDir) string {
	if len(roots) < 2 {
		return ""
	}
	var parts []string
	for _, r := range roots {
		parts = append(parts, fmt.Sprintf("%s is %s", r.name, r.dir))
	}
	return content.ClipBytes(strings.Join(parts, ", "), 400)
}

// missing matches the end of a message on a file that does not exist.
var missing = content.Pattern(`(?i)no such file or directory|\bENOENT\b|cannot find the (?:file|path)`)

// rootHint returns where a file is that a command did not find, if the output names it as the tools do, by the name of
// its root, or if another root has it; else "".
func rootHint(roots []rootDir, output []byte) string {
	for line := range bytes.Lines(output) {
		if !missing().Match(line) {
			continue
		}
		for _, word := range bytes.FieldsFunc(line, isAroundNames) {
			name := strings.TrimPrefix(string(word), "./")
			if !filepath.IsLocal(name) {
				continue
			}
			for _, r := range roots {
				if hint := r.hint(name, len(roots) > 1); hint != "" {
					return hint
				}
			}
		}
	}
	return ""
}

func isAroundNames(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune("'\"‘’`():=,", c)
}

// hint returns where a path that a command named is, if it is the root or exists below it; else "".
func (r rootDir) hint(name string, several bool) string {
	first, rest, below := strings.Cut(name, "/")
	switch {
	case first == r.name && (!below || r.has(rest)):
		return fmt.Sprintf("%s is the root %s: for a command it is $%s", r.name, r.dir, r.variable())
	case several && strings.ContainsAny(name, "./") && r.has(name):
		return fmt.Sprintf("%s is below the root %s: $%s/%s", content.ClipBytes(name, 200), r.name, r.variable(), name)
	}
	return ""
}
