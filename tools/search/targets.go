package search

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type place = tools.Place

// target is one file or observation to search.
type target struct {
	place *place     // of all targets in it
	path  string     // below the place's root
	id    string     // else an observation's
	in    *tree.Held // the directory of the file, to be released; nil: not held
}

// name is the target as the caller should name it.
func (t *target) name() string {
	if t.id != "" {
		return observations.Prefix + t.id
	}
	return shown(*t.place, t.path)
}

// release lets go of the directory of a target that was searched, or will not be.
func (t *target) release() {
	if t.in != nil {
		t.in.Release()
		t.in = nil
	}
}

// targets hands on what there is to search, in order, looking at ctx. Each is to be released by whoever gets it.
func (s *searcher) targets(ctx context.Context, places []place, to func(target) error) error {
	survey := tools.Survey{Left: len(places), Tell: func(said string) { s.gone = append(s.gone, said) }}
	for _, p := range places {
		var err error
		switch {
		case p.Observations:
			err = s.observed(ctx, to)
		case p.ID != "":
			err = to(target{id: string(p.ID)})
		case p.IsDir:
			err = s.walk(ctx, p, to)
		case s.glob == nil || s.glob.Match(path.Base(p.Path)):
			err = to(target{place: &p, path: p.Path})
		}
		if err := survey.Looked(p, err); err != nil {
			return err
		}
	}
	return nil
}

func (s *searcher) walk(ctx context.Context, p place, to func(target) error) error {
	r, err := p.Root.Walk(ctx, tree.Options{Start: p.Path, Glob: s.glob, All: s.All, Hold: true}, func(e tree.Entry) error {
		if e.Type != tree.File {
			return nil
		}
		return to(target{place: &p, path: e.Path, in: e.In})
	})
	s.report.Ignored += r.Ignored
	s.report.Unreadable += r.Unreadable
	s.report.CutRules += r.CutRules
	return err
}

// shown is a path as the caller should name it: bytes that JSON cannot hold are made visible.
func shown(p place, rel string) string {
	name := p.Shown(rel)
	if !utf8.ValidString(name) {
		name = content.Visible(name, false)
	}
	return name
}

// observed hands on all observations by ID, but those made from observations: a
// search would find again what it or another query found before.
func (s *searcher) observed(ctx context.Context, to func(target) error) error {
	all, err := s.in.Sources.Store.List(s.in.Sources.Owner, false)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b observations.Observation) int { return cmp.Compare(a.ID, b.ID) })
	for i := range all {
		o := &all[i]
		if s.glob != nil && !named(s.glob, o) {
			continue
		}
		if derived(o) {
			s.derived++
			continue
		}
		if err := to(target{id: string(o.ID)}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// named says whether the glob takes an observation: by its ID, its name, its tool or its file.
func named(g *tree.Glob, o *observations.Observation) bool {
	return slices.ContainsFunc([]string{string(o.ID), o.Name, o.Tool, o.File}, func(name string) bool {
		return name != "" && g.Match(strings.ReplaceAll(name, "/", "∕")) // a name is one name, whatever is in it
	})
}

// derived says whether an observation was made from others: by its origin, or by the path a search was given.
func derived(o *observations.Observation) bool {
	if slices.ContainsFunc(o.Origin, isObservation) {
		return true
	}
	if o.Tool != "search" && o.Tool != "find" {
		return false
	}
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(o.Args, &a) == nil {
		return isObservation(a.Path)
	}
	// Over 4 KiB the arguments are kept as a clipped string.
	var clipped string
	return json.Unmarshal(o.Args, &clipped) == nil && strings.Contains(clipped, `"path":"obs:`)
}

func isObservation(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return strings.HasPrefix(name, observations.Prefix) || strings.HasPrefix(name, observations.URIPrefix)
}
