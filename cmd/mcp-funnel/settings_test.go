package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAgeIsReadInDaysToo(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "1.5d": 36 * time.Hour, "90s": 90 * time.Second, "12h": 12 * time.Hour, "0": 0} {
		var a age
		if err := a.UnmarshalText([]byte(text)); err != nil || time.Duration(a) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(a), err)
		}
	}
	for _, bad := range []string{"", "d", "-1d", "-5s", "7", "7 days", "NaNd", "1e9d"} {
		var a age
		if err := a.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was taken as %v", bad, time.Duration(a))
		}
	}
}

// The current directory is granted unasked only where that is no home and no system.
func TestTooWide(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "people", "ann")
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for dir, want := range map[string]bool{string(filepath.Separator): true, home: true, filepath.Dir(home): true, project: false} {
		if got := tooWide(dir); got != want {
			t.Errorf("%s: %t", dir, got)
		}
	}
}

// A variable that is set to nothing is as good as none: it must not make the current directory a store or a root.
func TestEmptySettingsAreDefaults(t *testing.T) {
	here, home := t.TempDir(), t.TempDir()
	t.Chdir(here)
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	for _, name := range []string{"MCP_FUNNEL_STORE", "MCP_FUNNEL_ROOT", "MCP_FUNNEL_CONFIG"} {
		t.Setenv(name, "")
	}
	var out, complaints strings.Builder
	if code := run(t.Context(), []string{"--min-free", "0", "observations", "list"}, strings.NewReader(""), &out, &complaints); code != done {
		t.Fatalf("code %d: %s", code, complaints.String())
	}
	if want := "nothing is kept in " + filepath.Join(home, "state", "mcp-funnel") + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if made, err := os.ReadDir(here); err != nil || len(made) > 0 {
		t.Errorf("in the current directory: %v, %v", made, err)
	}
	s := Settings{Root: []string{"", "sub"}, Store: "kept"}
	_ = s.AfterApply() // what else is not set is refused
	if len(s.Root) != 1 || s.Root[0] != filepath.Join(here, "sub") || s.Store != filepath.Join(here, "kept") {
		t.Errorf("%q, %q", s.Root, s.Store)
	}
}
