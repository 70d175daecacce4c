package search

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// target is one file or observation to search.
type target struct {
	entry    source.Entry
	at       *source.Location
	document bool // its text is searched, not its bytes
}

// name returns the target's name as a call should name it; bytes that JSON cannot hold are escaped.
func (t *target) name() string {
	name := t.entry.Name()
	if !utf8.ValidString(name) {
		name = content.Visible(name, false)
	}
	return name
}

// release closes the directory that the walk holds open for a target.
func (t *target) release() { t.entry.Release() }

// eachTarget calls to for each file and observation to search, in order. The callee releases the target.
func (s *searcher) eachTarget(ctx context.Context, locations []source.Location, to func(target) error) error {
	missing := s.in.Sources.CheckRoots(locations, func(note string) { s.missingRoots = append(s.missingRoots, note) })
	for _, l := range locations {
		if err := missing.Check(l, s.eachTargetAt(ctx, l, to)); err != nil {
			return err
		}
	}
	return nil
}

// eachTargetAt calls to for the targets of one location. It skips observations derived from observations, unless one is
// named: a search would otherwise find its own earlier results.
func (s *searcher) eachTargetAt(ctx context.Context, l source.Location, to func(target) error) error {
	o := source.ListOptions{
		Walk:     tree.Options{Glob: s.glob, All: s.All, Hold: true},
		Damaged:  func(names []string) { s.damaged = names },
		Contents: s.contents, Note: func(note string) { s.missingRoots = append(s.missingRoots, note) },
	}
	if _, below := l.Dir(); below && s.Archives && l.IsDir { // the glob chooses among members too
		o.Walk.Glob = nil
	}
	if !l.IsDir && l.Name() != "" && observations.IsName(l.Name()) {
		o.Walk.Glob = nil // an observation that is named is searched whatever the glob says
	}
	r, err := l.List(ctx, o, func(e source.Entry) error {
		if e.Type != tree.File && l.IsDir {
			return nil
		}
		if s.Archives && l.IsDir {
			if archive, ok := l.ArchiveAt(&e); ok {
				e.Release()
				return s.eachTargetAt(ctx, archive, to)
			}
			if below := strings.TrimPrefix(e.Path, l.Path+"/"); s.glob != nil && o.Walk.Glob == nil && !s.glob.Match(below) {
				e.Release()
				return nil
			}
		}
		if e.Observation != nil && l.IsDir && derived(e.Observation) {
			s.skippedDerived++
			return nil
		}
		return to(target{e, &l, e.IsFile() && s.in.Sources.Documents.Replaces(e.Path)})
	})
	s.report = source.SumReports(s.report, r)
	return err
}

// derived reports whether an observation was made from others: by its origin, or by the path argument of a search.
func derived(o *observations.Observation) bool {
	if slices.ContainsFunc(o.Origin, func(name string) bool { return observations.IsName(strings.TrimSpace(name)) }) {
		return true
	}
	if o.Tool != "search" && o.Tool != "find" {
		return false
	}
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(o.Args, &a) == nil {
		return observations.IsName(strings.TrimSpace(a.Path))
	}
	// Over 4 KiB the arguments are kept as a clipped string.
	var clipped string
	return json.Unmarshal(o.Args, &clipped) == nil && strings.Contains(clipped, `"path":"obs:`)
}
