package tree

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// globState is what is left of the patterns after part of a path: a walk matches each name once, not each path.
type globState struct {
	at      []position // by pattern, then by part
	matches bool       // a path that ends here matches, unless it is excluded
	exclude bool       // a path that ends here is excluded, with all that is below it
}

// position is the index of a pattern, and of the part of it that the next name must match.
type position struct{ pattern, part int }

// everything is the state without a glob.
var everything = &globState{matches: true}

// begin returns the state before all names.
func (g *Glob) begin() *globState {
	if g == nil {
		return everything
	}
	return g.start
}

// after returns the state after a name in the directory of s.
func (g *Glob) after(s *globState, name string) *globState {
	if s == everything {
		return s
	}
	name = norm.NFC.String(name)
	next := &globState{}
	for _, at := range s.at {
		parts := g.patterns[at.pattern]
		if parts[at.part] == "**" {
			g.add(next, at)
			at.part++
		}
		if at.part < len(parts) && doublestar.MatchUnvalidated(parts[at.part], name) {
			at.part++
			g.add(next, at)
		}
	}
	return next
}

// add adds a position to a state. Of a pattern, only the latest "**" is kept, without the parts before it: it also
// matches all that those could.
func (g *Glob) add(s *globState, at position) {
	parts := g.patterns[at.pattern]
	left := parts[at.part:]
	if len(left) == 0 || len(left) == 1 && left[0] == "**" { // "a/**" matches a too
		s.matches, s.exclude = s.matches || at.pattern < g.except, s.exclude || at.pattern >= g.except
	}
	if len(left) == 0 {
		return
	}
	last := len(s.at)
	for last > 0 && s.at[last-1].pattern == at.pattern && (left[0] == "**" || s.at[last-1].part == at.part) {
		last--
	}
	s.at = append(s.at[:last], at)
}

// below returns the state before the names in a directory, whose state is s; nil if nothing in it can match.
func (g *Glob) below(s *globState) *globState {
	if s == everything || !s.exclude && len(s.at) > 0 && s.at[0].pattern < g.except {
		return s
	}
	return nil
}

// Match reports whether a slash path matches.
func (g *Glob) Match(p string) bool {
	name, rest, more := strings.Cut(p, "/")
	s := g.after(g.begin(), name)
	for more {
		if s = g.below(s); s == nil {
			return false
		}
		name, rest, more = strings.Cut(rest, "/")
		s = g.after(s, name)
	}
	return s.matches && !s.exclude
}
