package source_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// TestPlaces runs one suite on every implementation of [source.Place]. Each place holds three sources with the texts
// "one", "two" and "three".
func TestPlaces(t *testing.T) {
	st := store(t)
	for _, text := range []string{"one", "two", "three"} {
		keep(t, st, observations.Local, text)
	}
	files := map[string]string{"a/b/c.txt": "one", "a/d.txt": "two", "e.txt": "three"}
	other := workspace(t, "other", map[string]string{"f.txt": "four"})
	scratch := workspace(t, "s", files)
	for name, k := range map[string]struct {
		set   source.Set
		start string
	}{
		"one root":      {source.Set{Roots: []*tree.Root{workspace(t, "w", files)}}, "."},
		"several roots": {source.Set{Roots: []*tree.Root{workspace(t, "w", files), other}}, "w"},
		"zip":           {source.Set{Roots: []*tree.Root{workspace(t, "w", map[string]string{"x.zip": zipOf(t, files)})}}, "x.zip"},
		"tar in a directory in gzip": {
			source.Set{Roots: []*tree.Root{workspace(t, "w", map[string]string{"d/x.tgz": gzipped(t, tarOf(t, files))}), other}},
			"w/d/x.tgz",
		},
		"scratch": {
			source.Set{Places: []source.NamedPlace{
				source.Scratch(func() (*tree.Root, error) { return scratch, nil }),
			}}, "scratch:",
		},
		"texts": {source.Set{Places: []source.NamedPlace{source.Texts("inv:", made{
			"a": "one", "b": "two", "c": "three",
		})}}, "inv:"},
		"observations": {source.Set{Places: []source.NamedPlace{source.Observations(st, observations.Local)}}, "obs:"},
	} {
		t.Run(name, func(t *testing.T) { testPlace(t, k.set, k.start) })
	}
}

// made are texts by their paths.
type made map[string]string

func (m made) Texts(context.Context) (all []source.Text, err error) {
	for p, text := range m {
		all = append(all, source.Text{Path: p, Size: int64(len(text))})
	}
	return all, nil
}

func (m made) Text(_ context.Context, p string) ([]byte, time.Time, error) {
	if text, ok := m[p]; ok {
		return []byte(text), time.Time{}, nil
	}
	return nil, time.Time{}, os.ErrNotExist
}

func testPlace(t *testing.T, s source.Set, start string) {
	locations, err := s.Locate(t.Context(), start)
	if err != nil || len(locations) != 1 || !locations[0].IsDir {
		t.Fatalf("locations of %s: %+v, %v", start, locations, err)
	}
	l := locations[0]
	entries := entriesOf(t, l, source.ListOptions{})
	if len(entries) != 3 {
		t.Fatalf("%d entries", len(entries))
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, textOf(t, func() (*source.Source, error) { return l.Place.Open(t.Context(), e.Path) }))
		if byName := textOf(
			t, func() (*source.Source, error) { return s.Open(t.Context(), e.Name()) },
		); byName != texts[len(texts)-1] {
			t.Errorf("%s is %q by its path and %q by its name", e.Name(), texts[len(texts)-1], byName)
		}
		described, err := l.Place.Describe(t.Context(), e.Path)
		if err != nil || described.Name() != e.Name() || described.Type != e.Type || e.Type != tree.File {
			t.Errorf("%s: described as %s, %s: %v", e.Name(), described.Name(), described.Type, err)
		}
		if l.Place.Name(e.Path) != e.Name() {
			t.Errorf("%s is named %s by the place", e.Name(), l.Place.Name(e.Path))
		}
		alone, err := s.Locate(t.Context(), e.Name())
		if err != nil || len(alone) != 1 || alone[0].IsDir {
			t.Fatalf("locations of %s: %+v, %v", e.Name(), alone, err)
		}
		if same := entriesOf(t, alone[0], source.ListOptions{}); len(same) != 1 || same[0].Name() != e.Name() {
			t.Errorf("%s lists as %+v", e.Name(), same)
		}
	}
	slices.Sort(texts)
	if want := []string{"one", "three", "two"}; !slices.Equal(texts, want) {
		t.Errorf("texts %q, want %q", texts, want)
	}
	if top, err := l.Place.Describe(t.Context(), "."); err != nil || top.Type != tree.Dir {
		t.Errorf("the place itself: %+v, %v", top, err)
	}

	none, err := tree.CompileGlob("matches-nothing")
	if err != nil {
		t.Fatal(err)
	}
	if found := entriesOf(t, l, source.ListOptions{Walk: tree.Options{Glob: none}}); len(found) != 0 {
		t.Errorf("a glob without matches lists %+v", found)
	}
	visits := 0
	if _, err := l.List(t.Context(), source.ListOptions{}, func(source.Entry) error {
		visits++
		return tree.SkipAll
	}); err != nil || visits != 1 {
		t.Errorf("SkipAll: %d visits, %v", visits, err)
	}
	broken := errors.New("broken")
	if _, err := l.List(
		t.Context(), source.ListOptions{}, func(source.Entry) error { return broken },
	); !errors.Is(err, broken) {
		t.Errorf("the error of a visit became %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.List(
		ended, source.ListOptions{}, func(source.Entry) error { return nil },
	); !errors.Is(err, context.Canceled) {
		t.Errorf("listing after the end of the context: %v", err)
	}
	for _, missing := range []string{"k3v9q2m7x4ab"} {
		if _, err := l.Place.Open(t.Context(), missing); err == nil {
			t.Errorf("%s was opened", missing)
		}
		if _, err := l.Place.Describe(t.Context(), missing); err == nil {
			t.Errorf("%s was described", missing)
		}
	}
}

// entriesOf lists a location and returns its files.
func entriesOf(t *testing.T, l source.Location, o source.ListOptions) (entries []source.Entry) {
	t.Helper()
	report, err := l.List(t.Context(), o, func(e source.Entry) error {
		if e.Type == tree.File {
			entries = append(entries, e)
		}
		return nil
	})
	if err != nil || report.Files == 0 {
		t.Fatalf("listing: %d files seen, %v", report.Files, err)
	}
	return entries
}

func textOf(t *testing.T, open func() (*source.Source, error)) string {
	t.Helper()
	src, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	r, err := src.Text()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
