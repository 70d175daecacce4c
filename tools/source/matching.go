package source

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Matches are the files that a glob selects.
type Matches struct {
	Names  []string // in path order
	More   bool     // there are further files
	Report tree.Report
}

// splitGlob splits a path before its first name with glob characters.
func splitGlob(name string) (dir, pattern string) {
	at := 0
	for i := 0; i < len(name); i++ {
		if name[i] == '/' {
			at = i + 1
		} else if strings.IndexByte(`*?[{\`, name[i]) >= 0 {
			break
		}
	}
	dir, pattern = name[:at], name[at:]
	if dir != "/" {
		dir = strings.TrimSuffix(dir, "/")
	}
	return dir, pattern
}

// Match returns up to max files that a glob with a directory selects: "src/*.go" files directly in src, "*.go" files
// at any depth. progress is called while directories are read, and note with each root that is missing while others
// are left.
func (s Set) Match(
	ctx context.Context, name string, max int, progress func(tree.Report), note func(string),
) (m Matches, err error) {
	locations, o, err := s.LocateGlob(ctx, name)
	if err != nil {
		return m, err
	}
	o.Progress = progress
	missing := s.CheckRoots(locations, note)
	for _, l := range locations {
		if !l.IsDir {
			continue
		}
		report, err := l.List(ctx, ListOptions{Walk: o}, func(e Entry) error {
			if e.Type != tree.File {
				return nil
			}
			if len(m.Names) == max {
				m.More = true
				return tree.SkipAll
			}
			m.Names = append(m.Names, e.Name())
			return nil
		})
		if err := missing.Check(l, err); err != nil {
			return m, err
		}
		m.Report = SumReports(m.Report, report)
	}
	return m, nil
}

// LocateGlob returns the locations below which a glob with a directory selects files, and the options of the walk that
// selects them. See [Set.Match].
func (s Set) LocateGlob(ctx context.Context, name string) ([]Location, tree.Options, error) {
	dir, pattern := splitGlob(name)
	glob, err := tree.CompileGlob(pattern)
	if err != nil {
		return nil, tree.Options{}, err
	}
	o := tree.Options{Glob: glob}
	if dir != "" && !strings.Contains(pattern, "/") && pattern != "**" {
		o.Depth = 1
	}
	locations, err := s.Locate(ctx, dir)
	return locations, o, err
}

// SumReports returns the sum of the reports of two walks.
func SumReports(a, b tree.Report) tree.Report {
	first := a.FirstStore
	if a.Stores == 0 {
		first = b.FirstStore
	}
	return tree.Report{
		Stores: a.Stores + b.Stores, FirstStore: first,
		Dirs: a.Dirs + b.Dirs, Files: a.Files + b.Files, Ignored: a.Ignored + b.Ignored,
		Unreadable: a.Unreadable + b.Unreadable, CutRules: a.CutRules + b.CutRules,
	}
}

// StoreNote says which stores a walk skipped, so that their absence has a reason; "" if it skipped none.
func StoreNote(r tree.Report) string {
	name := content.ClipBytes(r.FirstStore, 200)
	switch r.Stores {
	case 0:
		return ""
	case 1:
		return name + " was skipped: it is a store of observations"
	}
	return fmt.Sprintf("%d stores of observations were skipped, the first is %s", r.Stores, name)
}
