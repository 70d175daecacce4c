package source

import (
	"context"
	"path"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxWalked is the maximum number of directory entries read for a completion.
const maxWalked = 20_000

// Completions are the names that complete a prefix.
type Completions struct {
	Names      []string // as a call names them; directories end with "/"
	Total      int      // number of matches, listed in Names or not
	Incomplete bool     // the walk ended early: there may be more than Total
}

// Complete returns the paths that begin with prefix, one directory deep, in path order: those that find would list. It
// returns at most limit names; ctx ends the walk. Names for which withhold returns true are neither listed nor
// counted, because a count would reveal them.
func (s Set) Complete(ctx context.Context, prefix string, limit int, withhold func(name string) bool) (p Completions) {
	at := strings.LastIndexByte(prefix, '/') + 1
	dir, first := prefix[:at], prefix[at:]
	locations, err := s.Locate(ctx, dir)
	if err != nil || observations.IsName(prefix) {
		return p
	}
	add := func(name string) {
		if !strings.HasPrefix(name, first) || withhold != nil && withhold(name) {
			return
		}
		p.Total++
		if len(p.Names) < limit {
			p.Names = append(p.Names, quoteName(dir+name))
		}
	}
	if len(locations) > 1 { // several roots
		for _, l := range locations {
			add(l.Place.(rootPlace).prefix())
		}
		return p
	}
	if !locations[0].IsDir {
		return p
	}
	walked := 0
	_, err = locations[0].List(ctx, ListOptions{Walk: tree.Options{Depth: 1}}, func(e Entry) error {
		if walked++; walked > maxWalked {
			p.Incomplete = true
			return tree.SkipAll
		}
		name := content.VisibleLine(path.Base(e.Path))
		if e.Type == tree.Dir {
			name += "/"
		}
		add(name)
		return nil
	})
	p.Incomplete = p.Incomplete || err != nil
	return p
}
