package tools

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/tree"
)

// ErrNarrowed is answered where the client's own roots leave nothing of those that were granted.
var ErrNarrowed = errors.New("no root: none of the client's roots lies within a directory granted to this server (--root); " +
	"open such a directory in the client, or start the server with another --root, or with --no-client-roots, which passes the client's over " +
	"(obs:ID sources work without one)")

// Narrow leaves of the roots what lies in one of dirs, absolute paths: a root that lies in one stays as
// it is, of others the directories named remain, each a root of its own. It can grant nothing: a directory
// outside the roots, one that is denied, or none at all is passed over. Observations stay. Close what was
// opened by done when the sources are no longer used.
func (s Sources) Narrow(dirs []string) (narrowed Sources, done func()) {
	var opened []*tree.Root
	narrowed = s
	narrowed.Roots = nil
	for _, root := range s.Roots {
		if slices.ContainsFunc(dirs, root.Within) {
			narrowed.Roots = append(narrowed.Roots, root)
			continue
		}
		for _, rel := range widest(root, dirs) {
			if sub, err := root.Sub(rel); err == nil {
				narrowed.Roots, opened = append(narrowed.Roots, sub), append(opened, sub)
			}
		}
	}
	if len(narrowed.Roots) == 0 && len(s.Roots) > 0 {
		narrowed.NoRoot = ErrNarrowed
	}
	return narrowed, func() {
		for _, root := range opened {
			_ = root.Close()
		}
	}
}

// widest are the directories that lie below the root, as slash paths, without those that lie in another of them.
func widest(root *tree.Root, dirs []string) []string {
	var rels []string
	for _, dir := range dirs {
		if rel, err := root.Rel(dir); err == nil && filepath.IsAbs(dir) {
			rels = append(rels, rel)
		}
	}
	slices.Sort(rels)
	rels = slices.Compact(rels)
	all := slices.Clone(rels)
	return slices.DeleteFunc(rels, func(rel string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(rel, other+"/") })
	})
}
