package files_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// Links that someone planted under the names of a store lead nowhere.
func TestPlantedLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	const secret = "outside the store"
	must(t, os.WriteFile(outside, []byte(secret), 0o600))
	s := open(t, Options{})
	inside := keep(t, s, Provenance{Owner: "ann", Tool: "search"}, []byte(secret))
	for _, target := range []string{outside, filepath.Base(s.SavedTo(inside))} { // also one that stays inside
		for name, plant := range map[string]func(o Observation) string{
			"data":    func(o Observation) string { return s.SavedTo(o) },
			"sidecar": func(o Observation) string { return sidecarPath(s, o.ID) },
			"index":   func(o Observation) string { return dir(s, "observations/"+string(o.ID)+files.IndexExt) },
		} {
			o := keep(t, s, Provenance{Tool: "search"}, []byte(strings.Repeat("x", len(secret))))
			path := plant(o)
			must(t, os.Remove(path))
			if err := os.Symlink(target, path); err != nil {
				t.Skip("links cannot be made here")
			}
			if r, err := s.Open(Local, o.ID); err == nil {
				b, _ := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
				if strings.Contains(string(b), secret) {
					t.Errorf("%s as a link to %s: it was followed", name, target)
				}
				_, _, _ = r.LineOffset(2)
				_ = r.Close()
			} else if name == "index" {
				t.Errorf("%s as a link: %v", name, err)
			}
			if _, err := s.Prune(false); err != nil {
				t.Error(err)
			}
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != secret {
		t.Errorf("outside: %q, %v", b, err)
	}
	// The control: without the guard the link is followed, so a pass above means something.
	o := keep(t, s, Provenance{Tool: "search"}, []byte("x"))
	must(t, os.Remove(s.SavedTo(o)))
	must(t, os.Symlink(filepath.Base(s.SavedTo(inside)), s.SavedTo(o)))
	f := value(s.Disk().Dirs[storefs.ObservationsDir].Open(o.File))
	defer func() { _ = f.Close() }()
	if b, _ := io.ReadAll(f); string(b) != secret {
		t.Errorf("control: a link inside is not followed: %q", b)
	}
	// The names of the quota and of a live file.
	must(t, os.Remove(dir(s, files.QuotaName)))
	must(t, os.Symlink(outside, dir(s, files.QuotaName)))
	if _, err := record(t, s, Provenance{}, []byte("x")).Commit(Stats{}); err == nil {
		t.Error("a quota file that is a link was taken")
	}
	if b, _ := os.ReadFile(outside); string(b) != secret {
		t.Errorf("outside was written: %q", b)
	}
}
