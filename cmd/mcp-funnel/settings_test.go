package main

import (
	"os"
	"path/filepath"
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
