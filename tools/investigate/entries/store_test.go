package entries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPrune removes what nobody used for 90 days, and the least recently used ones over the limit.
func TestPrune(t *testing.T) {
	s := Open(t.TempDir(), 4000, false)
	now := time.Now()
	s.now = func() time.Time { return now }
	begin := func(target string, size int) string {
		t.Helper()
		i, err := s.Create(Meta{Target: target, Identity: "local"})
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Write("padding.json", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		m, err := i.Meta()
		if err != nil {
			t.Fatal(err)
		}
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
	s := Open(t.TempDir(), 0, false)
	i, err := s.Create(Meta{Target: "/a", Identity: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{".", "a", "b", "c"} {
		if _, err := i.PutDir(Dir{RelativePath: p, Summary: p}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := i.Meta()
	if err != nil {
		t.Fatal(err)
	}
	at := func(p string) string { return filepath.Join(s.dir, m.ID, dirsDir, entryName(p)) }
	if err := os.Truncate(at("a"), 10); err != nil {
		t.Fatal(err)
	}
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
	s := Open(t.TempDir(), 0, false)
	i, err := s.Create(Meta{Target: "/a", Identity: "local"})
	if err != nil {
		t.Fatal(err)
	}
	put := func(by string, partial bool) bool {
		t.Helper()
		q := Quality{By: by, Partial: partial, Fingerprint: "x"}
		kept, err := i.PutDir(Dir{RelativePath: "a", Summary: by, Quality: q})
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	for n, c := range []struct {
		by      string
		partial bool
		want    bool
	}{
		{Mechanical, false, true}, {"model m", true, true}, {Agent, false, true}, {"model m", true, false},
		{Agent, false, true},
	} {
		if got := put(c.by, c.partial); got != c.want {
			t.Errorf("%d: kept %v, want %v", n, got, c.want)
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
		s := Open(t.TempDir(), 0, false)
		t.Cleanup(s.Close)
		now := time.Now()
		s.now = func() time.Time { return now }
		i, err := s.Create(Meta{Target: "/a", Identity: "local"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := i.Meta()
		if err != nil {
			t.Fatal(err)
		}
		o, err := i.NewOrder("directory", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(jump)
		if got := i.Leased(o); got != want.leased {
			t.Errorf("%v: leased %v", jump, got)
		}
		if _, err := s.Create(Meta{Target: "/b", Identity: "local"}); err != nil { // removes what is too old
			t.Fatal(err)
		}
		if _, err := s.Get("local", m.ID); (err == nil) != want.kept {
			t.Errorf("%v: %v, want it kept: %v", jump, err, want.kept)
		}
	}
}

// TestEntriesAreThoseWrittenLast writes entries of one size faster than the clock of files ticks: what is read is what
// was written last.
func TestEntriesAreThoseWrittenLast(t *testing.T) {
	s := Open(t.TempDir(), 0, false)
	i, err := s.Create(Meta{Target: "/a", Identity: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		dir := Dir{RelativePath: "a", Summary: fmt.Sprintf("%03d", n)}
		file := File{RelativePath: "a/b", Summary: dir.Summary}
		_, err1 := i.PutDir(dir)
		_, err2 := i.PutFile(file)
		dirs, _, err3 := i.Dirs()
		files, _, err4 := i.Files()
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		if dirs["a"].Summary != dir.Summary || files["a/b"].Summary != dir.Summary {
			t.Fatalf("%q was written, %q and %q read", dir.Summary, dirs["a"].Summary, files["a/b"].Summary)
		}
	}
}
