package observations

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

func TestOwners(t *testing.T) {
	s := open(t, Options{})
	mine := keep(t, s, Provenance{Owner: "ann", Tool: "search"}, []byte("secret"))
	gone := keep(t, s, Provenance{Owner: "ann", Tool: "search"}, []byte("secret"))
	if err := s.Remove("ann", gone.ID); err != nil {
		t.Fatal(err)
	}
	for _, id := range []ID{mine.ID, gone.ID} {
		unknown := RandomID()
		for name, do := range map[string]func(ID) error{
			"Open":   func(id ID) error { _, err := s.Open("bob", id); return err },
			"Look":   func(id ID) error { _, err := s.Stat("bob", id); return err },
			"Verify": func(id ID) error { return s.Verify("bob", id) },
			"Pin":    func(id ID) error { return s.Pin("bob", id, true) },
			"Remove": func(id ID) error { return s.Remove("bob", id) },
		} {
			got, want := do(id), do(unknown)
			if !errors.Is(got, ErrNotFound) {
				t.Errorf("%s of another's: %v", name, got)
			}
			if g, w := strings.ReplaceAll(got.Error(), string(id), "ID"), strings.ReplaceAll(
				want.Error(), string(unknown), "ID",
			); g != w {
				t.Errorf("%s tells another's from an unknown one: %q, %q", name, g, w)
			}
		}
	}
	for id, want := range map[ID]string{mine.ID: "ann", gone.ID: "ann", RandomID(): ""} { // for who may read the store
		if owner, err := s.Owner(id); owner != want || (err == nil) != (want != "") {
			t.Errorf("Whose(%s) = %q, %v; want %q", id, owner, err, want)
		}
	}
	for owner, want := range map[string]int{"ann": 2, "bob": 0, "": 2, Local: 0} {
		if list, err := s.List(owner, true); err != nil || len(list) != want {
			t.Errorf("List(%q) = %d, %v; want %d", owner, len(list), err, want)
		}
	}
	if got := dataOf(t, s, "ann", mine.ID); string(got) != "secret" {
		t.Errorf("the owner reads %q", got)
	}
	if _, err := s.Open("ann", gone.ID); !errors.Is(err, ErrExpired) {
		t.Errorf("the owner's removed one: %v", err)
	}
}

// Links that someone planted under the names of a store lead nowhere.
func TestPlantedLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	const secret = "outside the store"
	if err := os.WriteFile(outside, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{})
	inside := keep(t, s, Provenance{Owner: "ann", Tool: "search"}, []byte(secret))
	for _, target := range []string{outside, filepath.Base(s.SavedTo(inside))} { // also one that stays inside
		for name, plant := range map[string]func(o Observation) string{
			"data":    func(o Observation) string { return s.SavedTo(o) },
			"sidecar": func(o Observation) string { return sidecarPath(s, o.ID) },
			"index":   func(o Observation) string { return dir(s, "observations/"+string(o.ID)+indexExt) },
		} {
			o := keep(t, s, Provenance{Tool: "search"}, []byte(strings.Repeat("x", len(secret))))
			path := plant(o)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
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
	f, err := s.files.disk.Dirs[storefs.ObservationsDir].Open(o.File)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if b, _ := io.ReadAll(f); string(b) != secret {
		t.Errorf("control: a link inside is not followed: %q", b)
	}
	// The names of the quota and of a live file.
	if err := os.Remove(dir(s, quotaName)); err != nil {
		t.Fatal(err)
	}
	must(t, os.Symlink(outside, dir(s, quotaName)))
	if _, err := record(t, s, Provenance{}, []byte("x")).Commit(Stats{}); err == nil {
		t.Error("a quota file that is a link was taken")
	}
	if b, _ := os.ReadFile(outside); string(b) != secret {
		t.Errorf("outside was written: %q", b)
	}
}
