package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// gitNames are the parts of a git directory that name programs, or another directory with such parts.
var gitNames = []string{".git/commondir", ".git/hooks", ".git/config", ".git/config.worktree"}

// bareNames make a directory a bare repository, of which git reads the configuration that lies beside them.
var bareNames = []string{"HEAD", "objects", "refs"}

// guards are the names below one root that did not exist when the first of its running commands began. No mount can
// cover them, so what commands create there is renamed when each of them ends.
type guards struct {
	commands int // that run
	names    []string
	bare     bool     // the root was a bare repository before
	spaces   []string // files of workspaces that were there before
}

// guard begins to guard the roots of a command.
func (s *Shell) guard(roots []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, root := range roots {
		g := s.guards[root]
		if g == nil {
			g = &guards{bare: isBare(root), spaces: workspaces(root)}
			for _, name := range slices.Concat(tree.Guarded, absentGit(root)) {
				if _, err := os.Lstat(filepath.Join(root, name)); errors.Is(err, fs.ErrNotExist) {
					g.names = append(g.names, name)
				}
			}
			s.guards[root] = g
		}
		g.commands++
	}
}

// absentGit returns the names of a git directory to guard. Mounts cover hooks and configuration of one that exists.
func absentGit(root string) []string {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err != nil {
		return gitNames
	}
	return gitNames[:1]
}

// workspaces returns the names of workspace files directly below a root.
func workspaces(root string) (names []string) {
	found, _ := filepath.Glob(filepath.Join(escapeGlob(root), "*"+tree.WorkspaceSuffix))
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}

// escapeGlob returns a path as a pattern that matches it alone.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func isBare(root string) bool {
	return !slices.ContainsFunc(bareNames, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err != nil
	})
}

// releaseGuards ends the guard of a command's roots, after a last quarantine.
func (s *Shell) releaseGuards(roots []string) {
	s.quarantine(roots)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, root := range roots {
		if g := s.guards[root]; g != nil {
			if g.commands--; g.commands == 0 {
				delete(s.guards, root)
			}
		}
	}
}

// quarantine renames what commands have created under guarded names, and returns a note for each.
func (s *Shell) quarantine(roots []string) (notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, root := range roots {
		g := s.guards[root]
		if g == nil {
			continue
		}
		names := g.names
		if !g.bare && isBare(root) {
			names = append(slices.Clone(names), "HEAD")
		}
		for _, name := range workspaces(root) {
			if !slices.Contains(g.spaces, name) {
				names = append(slices.Clone(names), name)
			}
		}
		for _, name := range names {
			path := filepath.Join(root, name)
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			// The name is random: a command cannot put something in its place.
			aside := path + ".from-run-" + string(observations.RandomID())
			if err := os.Rename(path, aside); err != nil {
				notes = append(notes, fmt.Sprintf(
					"%s was created by a command and cannot be renamed: delete it before a client or git runs what it holds",
					path,
				))
				continue
			}
			notes = append(
				notes,
				fmt.Sprintf("clients and git run what is in %s: it was renamed to %s; a person may rename it back",
					name, filepath.Base(aside)),
			)
		}
	}
	return notes
}
