package entries

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/records"
)

// opened returns a store in a directory.
func opened(t *testing.T, dir string, limit int64) (*Store, *records.Files) {
	t.Helper()
	files := records.InDir(dir)
	t.Cleanup(files.Close)
	return Open(files, limit, false), files
}

// begun returns a store with an investigation of /a.
func begun(t *testing.T, dir string) (*Store, *Investigation) {
	t.Helper()
	s, _ := opened(t, dir, 0)
	i, err := s.Create(Meta{Target: "/a", Identity: "local"})
	expect.Must(t, err)
	return s, i
}

// TestPrune removes what nobody used for 90 days, and the least recently used ones over the limit.
func TestPrune(t *testing.T) {
	s, files := opened(t, t.TempDir(), 4000)
	now := time.Now()
	s.now = func() time.Time { return now }
	files.Now = s.now
	begin := func(target string, size int) string {
		t.Helper()
		i, err := s.Create(Meta{Target: target, Identity: "local"})
		expect.Must(t, err)
		expect.Must(t, i.Write("padding.json", make([]byte, size)))
		m, err := i.Meta()
		expect.Must(t, err)
		now = now.Add(time.Hour)
		return m.ID
	}
	old := begin("/a", 10)
	now = now.Add(91 * 24 * time.Hour)
	first := begin("/b", 1500)
	second := begin("/c", 1500)
	third := begin("/d", 10)
	for id, want := range map[string]bool{old: false, first: false, second: true, third: true} {
		if _, err := s.Get("local", id); (err == nil) != want {
			t.Errorf("%s: %v, want it kept: %v", id, err, want)
		}
	}
	if _, err := s.Find("local", "/b"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a removed target: %v", err)
	}
	if i, err := s.Find("local", "/c"); err != nil || i == nil {
		t.Errorf("a kept target: %v", err)
	}
}

// TestDamagedEntries counts entries that are cut or foreign, and leaves them out.
func TestDamagedEntries(t *testing.T) {
	dir := t.TempDir()
	_, i := begun(t, dir)
	for _, p := range []string{".", "a", "b", "c"} {
		if _, err := i.PutDir(Dir{RelativePath: p, Summary: p}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := i.Meta()
	expect.Must(t, err)
	at := func(p string) string { return filepath.Join(dir, "investigations", m.ID, dirsDir, entryName(p)) }
	expect.Must(t, os.Truncate(at("a"), 10))
	if err := os.Rename(at("b"), at("c")); err != nil { // of another directory
		t.Fatal(err)
	}
	all, damaged, err := i.Dirs()
	if err != nil || damaged != 2 || len(all) != 1 || all["."].Summary != "." {
		t.Errorf("%+v, %d damaged, %v", all, damaged, err)
	}
}

// TestPartial keeps whole notes from partial ones, and mechanical ones not.
func TestPartial(t *testing.T) {
	_, i := begun(t, t.TempDir())
	for n, c := range []struct {
		by      string
		partial bool
		want    bool
	}{
		{Mechanical, false, true}, {"model m", true, true}, {Agent, false, true}, {"model m", true, false},
		{Agent, false, true},
	} {
		q := Quality{By: c.by, Partial: c.partial, Fingerprint: "x"}
		kept, err := i.PutDir(Dir{RelativePath: "a", Summary: c.by, Quality: q})
		if err != nil || kept != c.want {
			t.Errorf("%d: kept %v, want %v: %v", n, kept, c.want, err)
		}
	}
}

// TestClockJumps sets the clock forth and back: leases end within 30 minutes of either clock, and what was used lately
// by the clock of its time is kept.
func TestClockJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for jump, want := range map[time.Duration]struct{ leased, kept bool }{
		0: {true, true}, time.Minute: {true, true}, -time.Minute: {true, true}, -time.Hour: {false, true},
		time.Hour: {false, true}, 89 * 24 * time.Hour: {false, true}, year: {false, false}, -year: {false, true},
	} {
		s, i := begun(t, t.TempDir())
		now := time.Now()
		s.now = func() time.Time { return now }
		m, err := i.Meta()
		expect.Must(t, err)
		o, err := i.NewOrder("directory", nil, nil)
		expect.Must(t, err)
		now = now.Add(jump)
		expect.Equal(t, i.Leased(o), want.leased, "%v: leased", jump)
		if _, err := s.Create(Meta{Target: "/b", Identity: "local"}); err != nil { // removes what is too old
			t.Fatal(err)
		}
		if _, err := s.Get("local", m.ID); (err == nil) != want.kept {
			t.Errorf("%v: %v, want it kept: %v", jump, err, want.kept)
		}
	}
}
