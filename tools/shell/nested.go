package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// Limits of the search below a root. It runs before each command, because a command may have renamed what it finds.
const (
	maxSearched = 4000 // directories
	maxEntries  = 1e6  // of all directories together
	maxNested   = 200  // names that are found
)

// nested are the paths below the subdirectories of a root that need mounts of their own.
type nested struct {
	guarded []string // files and directories that clients run
	git     []string // .git of further repositories and worktrees
	stores  []string // directories of a store
	limited bool     // the search ended at its limit
}

// searchNested looks for guarded names and stores below a directory, breadth first and never through a link. It skips
// node_modules: nobody opens a client there, and a package manager must be able to delete it.
func searchNested(root string) (n nested) {
	queue := []string{root}
	left := int(maxEntries)
	for searched := 0; len(queue) > 0; searched++ {
		dir := queue[0]
		queue = queue[1:]
		if searched == maxSearched || left == 0 || len(n.guarded)+len(n.git)+len(n.stores) >= maxNested {
			n.limited = true
			return n
		}
		entries := firstEntries(dir, left)
		if left -= len(entries); left == 0 {
			n.limited = true
		}
		if dir != root &&
			slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == tree.StoreMarker }) {
			n.stores = append(n.stores, dir)
			continue
		}
		for _, e := range entries {
			name, path := e.Name(), filepath.Join(dir, e.Name())
			switch {
			case e.Type()&os.ModeSymlink != 0:
			case name == ".git":
				if dir != root {
					n.git = append(n.git, path)
				}
			case strings.HasSuffix(name, tree.WorkspaceSuffix) || dir != root && slices.Contains(tree.Guarded, name):
				n.guarded = append(n.guarded, path)
			case e.IsDir() && name != "node_modules" && !slices.Contains(tree.Guarded, name):
				queue = append(queue, path)
			}
		}
	}
	return n
}

// firstEntries returns up to n entries of a directory, by name; none of one that cannot be read.
func firstEntries(dir string, n int) []os.DirEntry {
	f, err := os.OpenFile(dir, os.O_RDONLY|osfile.Nonblock, 0) // a command may have put a FIFO in its place
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	entries, _ := f.ReadDir(n)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// mounts returns read-only mounts over the paths that were found below the directory real. Commands see it as seen,
// which is another path if the root is a link.
func (n nested) mounts(real, seen string) (list []sandbox.Mount) {
	for _, path := range n.guarded {
		list = append(list, selfMount(path, false)...)
	}
	for _, path := range n.git {
		list = append(list, repositoryMounts(path)...)
	}
	for i, m := range list {
		list[i].Target = moved(m.Target, real, seen)
		list[i].Plain = m.Source != "" // commands may write to the directories above
	}
	return list
}

// moved returns a path below from as a path below to; others stay.
func moved(path, from, to string) string {
	rel, err := filepath.Rel(from, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.Join(to, rel)
}

// limitNotes returns a note for each root that was searched in part, once in the life of the server.
func (s *Shell) limitNotes(j *job) (notes []string) {
	for _, root := range j.view.limited {
		if _, known := s.noted.LoadOrStore(root, true); !known {
			notes = append(notes, fmt.Sprintf("below %s only the first %d directories, %d entries, or %d names, were searched "+
				"for configuration to guard and stores to hide", root, maxSearched, int(maxEntries), maxNested))
		}
	}
	return notes
}
