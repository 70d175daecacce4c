package source

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// ErrNarrowed is the error if none of the client's own roots lies within a root of the server.
var ErrNarrowed = errors.New("no root: none of the client's roots lies within a directory granted to this server (--root); " +
	"open such a directory in the client, or start the server with another --root, or with --no-client-roots, which ignores the client's roots " +
	"(obs:ID sources work without one)")

// Narrow limits the roots to dirs, absolute paths: a root inside one of them stays, and a directory inside a root
// becomes a root of its own. Directories outside the roots, denied or missing ones are ignored, so Narrow never grants
// more. Other places stay. Call done when the sources are no longer used: it closes the roots that Narrow opened.
func (s Set) Narrow(dirs []string) (narrowed Set, done func()) {
	var opened Set
	narrowed = s
	narrowed.Roots = nil
	for _, root := range s.Roots {
		if slices.ContainsFunc(dirs, root.Within) {
			narrowed.Roots = append(narrowed.Roots, root)
			continue
		}
		for _, rel := range outermost(root, dirs) {
			if sub, err := root.Sub(rel); err == nil {
				narrowed.Roots, opened.Roots = append(narrowed.Roots, sub), append(opened.Roots, sub)
			}
		}
	}
	if len(narrowed.Roots) == 0 && len(s.Roots) > 0 {
		narrowed.NoRoot = ErrNarrowed
	}
	return narrowed, opened.Close
}

// outermost returns the dirs below the root, as relative slash paths, without those that are inside another one.
func outermost(root *tree.Root, dirs []string) []string {
	var rels []string
	for _, dir := range dirs {
		if rel, err := root.Rel(dir); err == nil && filepath.IsAbs(dir) {
			rels = append(rels, rel)
		}
	}
	slices.Sort(rels) // a directory comes before those inside it
	var outer []string
	for _, rel := range slices.Compact(rels) {
		if !slices.ContainsFunc(outer, func(dir string) bool { return strings.HasPrefix(rel, dir+"/") }) {
			outer = append(outer, rel)
		}
	}
	return outer
}
