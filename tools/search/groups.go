package search

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
)

// Limits of show=groups. A distinct group beyond maxGroupBytes is only counted among the others.
const (
	maxGroup      = 4 << 10  // bytes kept of one group
	maxGroupBytes = 64 << 20 // bytes of all distinct groups, with 64 for the entry of each
)

// countingRule is what the help says of the numbers of grep and search.
const countingRule = "matches are matching lines, however often the pattern matches in one; groups count occurrences."

// groupCounts counts the groups that a pattern captures, or the texts it matches.
type groupCounts struct {
	n           map[string]int64
	size        int
	occurrences int64
	uncounted   int64 // occurrences of groups for which there was no room
	clipped     int64 // occurrences of groups over maxGroup
	cutLines    int64 // lines of which only a window was searched
}

// groupCount is one distinct group.
type groupCount struct {
	group string
	n     int64
}

// addLine counts the groups of a matching line.
func (g *groupCounts) addLine(m *linesearch.Matcher, l linesearch.Line) {
	if l.Cut() > 0 {
		g.cutLines++
	}
	g.addText(m, l.Text)
}

func (g *groupCounts) addText(m *linesearch.Matcher, text []byte) {
	m.Groups(text, func(tuple []byte) {
		g.occurrences++
		if len(tuple) > maxGroup {
			g.clipped++
			tuple = tuple[:maxGroup]
		}
		if n, ok := g.n[string(tuple)]; ok {
			g.n[string(tuple)] = n + 1
			return
		}
		g.add(string(tuple), 1)
	})
}

// add adds n occurrences of a group that may be new.
func (g *groupCounts) add(group string, n int64) {
	if g.n == nil {
		g.n = map[string]int64{}
	}
	if _, ok := g.n[group]; !ok {
		if g.size += len(group) + 64; g.size > maxGroupBytes {
			g.uncounted += n
			return
		}
	}
	g.n[group] += n
}

// merge adds the counts of another part, and empties it.
func (g *groupCounts) merge(o *groupCounts) {
	for group, n := range o.n {
		g.add(group, n)
	}
	g.occurrences += o.occurrences
	g.uncounted += o.uncounted
	g.clipped += o.clipped
	g.cutLines += o.cutLines
	*o = groupCounts{}
}

// sorted returns the groups: most frequent first, then by text.
func (g *groupCounts) sorted() []groupCount {
	all := make([]groupCount, 0, len(g.n))
	for group, n := range g.n {
		all = append(all, groupCount{group, n})
	}
	slices.SortFunc(all, func(a, b groupCount) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.group, b.group))
	})
	return all
}

// notes returns the notes on empty groups, on groups that are not listed or clipped, and on lines searched in part.
func (g *groupCounts) notes() []string {
	var notes []string
	if n := g.n[""]; n > 0 {
		notes = append(notes, content.Plural(n, "occurrence is", "occurrences are")+
			" empty: the group captured, or the pattern matched, no text there")
	}
	if g.uncounted > 0 {
		notes = append(notes, fmt.Sprintf(
			"%s belong to further groups, which are not listed: over %d MiB of distinct groups; use a narrower pattern",
			content.Plural(g.uncounted, "occurrence", "occurrences"), maxGroupBytes>>20,
		))
	}
	if g.clipped > 0 {
		notes = append(notes, content.Plural(g.clipped, "group is", "groups are")+" over 4 KiB and cut to that")
	}
	if g.cutLines > 0 {
		notes = append(notes, "only 1 MiB around the first match was searched for groups in "+
			content.Plural(g.cutLines, "longer line", "longer lines"))
	}
	return notes
}

// checkGroups returns an error if show=groups is combined with invert or context.
func checkGroups(show string, invert bool, context int) error {
	switch {
	case show != "groups":
		return nil
	case invert:
		return errors.New("show=groups counts what matches; it cannot be combined with invert")
	case context > 0:
		return errors.New("show=groups shows no lines; it cannot be combined with context")
	}
	return nil
}

// dirCount is a record of show=dirs.
type dirCount struct {
	matches, files int64
}

// dirOf returns the directory of a file as a call names it: "." for a file of a root that is not named, obs: for an
// observation.
func dirOf(name string) string {
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		return name[:max(at, 1)]
	}
	if before, _, ok := strings.Cut(name, ":"); ok {
		return before + ":"
	}
	return "."
}

// sortedDirs returns the names of the directories: most matches first, then by name.
func sortedDirs(dirs map[string]dirCount) []string {
	return slices.SortedFunc(maps.Keys(dirs), func(a, b string) int {
		return cmp.Or(cmp.Compare(dirs[b].matches, dirs[a].matches), strings.Compare(a, b))
	})
}
