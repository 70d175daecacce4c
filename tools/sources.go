package tools

import (
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Sources is what the calls of one caller may name.
type Sources = source.Set

// OpenSources returns the sources of a caller: the files below dirs, and the observations of owner in store (nil:
// none). Call done when they are no longer used. The error names the directory that cannot be opened.
func OpenSources(store *observations.Store, owner string, dirs ...string) (s Sources, done func(), err error) {
	s = Sources{Places: []source.NamedPlace{source.Observations(store, owner)}}
	var denied []string
	if store != nil {
		denied = append(denied, store.Dir()) // tools read observations through the store only
	}
	for _, dir := range dirs {
		root, err := tree.Open(dir, denied...)
		if err != nil {
			s.Close()
			return Sources{}, nil, err
		}
		s.Roots = append(s.Roots, root)
	}
	return s, s.Close, nil
}
