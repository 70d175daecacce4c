package tools

import (
	"context"
	"path"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/tree"
)

// maxWalked is how many entries of a directory are looked at for a completion.
const maxWalked = 20_000

// Proposals are names that go on from a beginning.
type Proposals struct {
	Names []string // as they may be named in a call; those of directories end with "/"
	Total int      // how many there are, Names or not
	Part  bool     // there may be more than Total: the walk was not ended
}

// Complete proposes the paths that begin as begun does, one directory deep, in path order: what find
// would list there. At most most are named; ctx ends the walk. What withhold holds for is neither named nor counted: a count
// would tell of it.
func (s Sources) Complete(ctx context.Context, begun string, most int, withhold func(name string) bool) (p Proposals) {
	at := strings.LastIndexByte(begun, '/') + 1
	dir, first := begun[:at], begun[at:]
	places, err := s.Places(ctx, dir)
	if err != nil || isObservation(begun) {
		return p
	}
	add := func(name string) {
		if !strings.HasPrefix(name, first) || withhold != nil && withhold(name) {
			return
		}
		p.Total++
		if len(p.Names) < most {
			p.Names = append(p.Names, spell(dir+name))
		}
	}
	if len(places) > 1 { // the roots
		for _, place := range places {
			add(place.Prefix)
		}
		return p
	}
	place, walked := places[0], 0
	if !place.IsDir {
		return p
	}
	_, err = place.Root.Walk(ctx, tree.Options{Start: place.Path, Depth: 1}, func(e tree.Entry) error {
		if walked++; walked > maxWalked {
			p.Part = true
			return tree.SkipAll
		}
		name := VisibleName(path.Base(e.Path))
		if e.Type == tree.Dir {
			name += "/"
		}
		add(name)
		return nil
	})
	p.Part = p.Part || err != nil
	return p
}
