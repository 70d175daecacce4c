package fs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// observed lists this caller's observations: the newest first, unless sort=path asks for the order of their IDs.
func (f *finder) observed(ctx context.Context) error {
	all, err := f.in.Sources.Store.List(f.in.Sources.Owner, false)
	if err != nil {
		return err
	}
	if f.Sort == "path" {
		slices.SortFunc(all, func(a, b observations.Observation) int { return cmp.Compare(a.ID, b.ID) })
	}
	for i := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.report.Files++
		if err := f.observation(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) oneObserved(ctx context.Context, id observations.ID) error {
	src, err := f.in.Sources.Open(ctx, observations.Prefix+string(id))
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	f.report.Files++
	return f.observation(src.Observation)
}

// observation takes one that the glob takes by its ID, name, tool or file.
func (f *finder) observation(o *observations.Observation) error {
	if f.glob != nil {
		named := func(name string) bool {
			return name != "" && f.glob.Match(strings.ReplaceAll(name, "/", "∕")) // a name is one name, whatever is in it
		}
		if !named(string(o.ID)) && !named(o.Name) && !named(o.Tool) && !named(o.File) {
			return nil
		}
	}
	return f.take(found{Path: observations.Prefix + string(o.ID), Type: tree.File, Size: o.Bytes, Modified: o.Created, seen: o})
}
