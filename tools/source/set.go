package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// ErrNoRoot is the error of every tool that needs a directory when the server has none.
var ErrNoRoot = errors.New(
	"no root: no directory was granted to this server; start it with --root DIR (obs:ID sources work without one)",
)

// Set is what one caller may name: the roots, and places that are chosen by the form of a name. The zero value has no
// sources.
type Set struct {
	Roots  []*tree.Root
	NoRoot error        // the error if there are no roots; nil: [ErrNoRoot]
	Places []NamedPlace // asked in this order, before the roots
	// MaxMember bounds what is read of a member of an archive, in bytes; 0: what an observation may have by default.
	MaxMember int64
	Documents *Documents // reads documents below the roots as text; nil: they are read as they are
	Versions  *Versions  // texts as they were shown, if files may be changed; nil: none are remembered
	Absent    []string   // sentences on the roots that could not be opened: which, and what to do
}

// Close closes the roots.
func (s Set) Close() {
	for _, root := range s.Roots {
		_ = root.Close()
	}
}

// Open opens the source that a call names: a path, obs:ID, observation://ID, a printed `saved to` path, or a name of
// another place. A path may be written as it was shown, with escapes such as \xNN or \u202e. Errors say what to do
// and echo at most 200 bytes.
func (s Set) Open(ctx context.Context, name string) (*Source, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errors.New("source is empty: name a file or obs:ID")
	}
	place, path, err := s.namedPlace(name)
	if err != nil {
		return nil, err
	}
	if place != nil {
		return place.Open(ctx, path)
	}
	root, rel, shown, err := s.resolve(name)
	if err != nil {
		return nil, s.addAbsent(err)
	}
	src, err := s.place(root).open(ctx, rel, shown)
	return src, s.addAbsent(err)
}

// Locate returns the locations that a path names. "." or "" names all roots, one location each.
func (s Set) Locate(ctx context.Context, name string) ([]Location, error) {
	place, path, err := s.namedPlace(name)
	if err != nil {
		return nil, err
	}
	if place != nil {
		return []Location{{Place: place, Path: path, IsDir: path == "."}}, nil
	}
	if len(s.Roots) == 0 {
		return nil, s.noRoot()
	}
	all, err := s.locateInRoots(ctx, name)
	return all, s.addAbsent(err)
}

// locateInRoots is Locate for a path below the roots.
func (s Set) locateInRoots(ctx context.Context, name string) ([]Location, error) {
	if name == "" {
		name = "."
	}
	if len(s.Roots) > 1 && filepath.Clean(name) == "." {
		var all []Location
		for _, root := range s.Roots {
			all = append(all, Location{Place: s.place(root), Path: ".", IsDir: true})
		}
		return all, nil
	}
	root, rel, _, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	rel = existing(root, rel)
	p := s.place(root)
	fi, err := root.Stat(rel)
	if err != nil || !fi.IsDir() {
		if a, inner, ok := p.archive(rel); ok {
			e, err := a.Describe(ctx, inner)
			return []Location{{Place: a, Path: inner, IsDir: e.Type == tree.Dir}}, err
		}
	}
	err = p.nameError(err)
	switch {
	case errors.Is(err, tree.ErrGone):
		return nil, err
	case errors.Is(err, fs.ErrNotExist) && tree.IsGlob(name):
		return nil, fmt.Errorf("%w; path takes no glob; use the argument glob", err)
	case errors.Is(err, fs.ErrNotExist):
		if _, _, ok := cutTable(root, rel); ok {
			return nil, fmt.Errorf("%w; if this is a table of a database, it is one source: grep source=%[2]s searches it, jq "+
				"source=%[2]s filters it, and read path=%[2]s shows it", err, content.ClipBytes(p.Name(rel), 200))
		}
		return nil, fmt.Errorf("%w%s", err, suggest(ctx, root, rel, p.prefix(), tree.File, tree.Dir))
	case err != nil:
		return nil, err
	}
	return []Location{{Place: p, Path: strings.TrimSuffix(rel, "/"), IsDir: fi.IsDir()}}, nil
}

// namedPlace returns the place whose form the name has, and the path within it; nil if the name is a path below a root.
func (s Set) namedPlace(name string) (NamedPlace, string, error) {
	for _, p := range s.Places {
		if path, ok, err := p.Resolve(name); ok || err != nil {
			return p, path, err
		}
	}
	if observations.IsName(name) { // a set without observations
		_, _, err := observationPlace{}.Resolve(name)
		return nil, "", err
	}
	return nil, "", nil
}

// place returns the place of a root.
func (s Set) place(root *tree.Root) rootPlace {
	p := rootPlace{root: root, docs: s.Documents, most: s.MaxMember}
	if len(s.Roots) > 1 {
		labels := s.Labels()
		i := slices.Index(s.Roots, root)
		p.label = labels[i]
		p.others = slices.Delete(labels, i, i+1)
	}
	return p
}

func (s Set) noRoot() error {
	switch {
	case s.NoRoot != nil:
		return s.addAbsent(s.NoRoot)
	case len(s.Absent) > 0:
		return fmt.Errorf("no root: %s (obs:ID sources work without one)", s.absentText())
	}
	return ErrNoRoot
}

// addAbsent adds the absent roots to the error on a name that does not exist, or is in no root: it may be in one.
func (s Set) addAbsent(err error) error {
	if err == nil || len(s.Absent) == 0 || len(s.Roots) == 0 && !errors.Is(err, ErrNarrowed) {
		return err
	}
	if _, other := errors.AsType[*tree.NameError](err); other && !errors.Is(err, fs.ErrNotExist) &&
		!errors.Is(err, tree.ErrOutside) {
		return err
	}
	return fmt.Errorf("%w; %s", err, s.absentText())
}

// maxAbsent bounds the text on absent roots in one error, in bytes.
const maxAbsent = 600

func (s Set) absentText() string { return content.ClipBytes(strings.Join(s.Absent, "; "), maxAbsent) }

// CheckRoots returns the check for a call on these locations, and reports the absent roots if it is on whole roots.
func (s Set) CheckRoots(locations []Location, report func(note string)) MissingRoots {
	if len(locations) > 0 && len(s.Absent) > 0 {
		if _, ok := locations[0].Place.(rootPlace); ok && locations[0].Path == "." {
			report(s.absentText())
		}
	}
	return MissingRoots{Left: len(locations), Report: report}
}
