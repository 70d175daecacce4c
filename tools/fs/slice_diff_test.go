package fs

import (
	"strings"
	"testing"
)

func TestSliceOfADiff(t *testing.T) {
	const text = "From x\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@ fn()\n-c\n+d\n" +
		"diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-e\n+f\n"
	src, ids := shelf(t, map[string]string{"a.diff": text})
	for _, tt := range []struct{ at, want, note string }{
		{"/0", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@ fn()\n-c\n+d", ""},
		{"/1", "diff --git a/g b/g\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-e\n+f", ""},
		{"/0/hunks/1", "@@ -9 +9 @@ fn()\n-c\n+d", "hunk 1 of 2 of f"},
		{"/1/hunks/0", "@@ -1 +1 @@\n-e\n+f", "hunk 0 of 1 of g"},
	} {
		for _, source := range []string{"a.diff", ids["a.diff"]} {
			s := cut(t, src, arguments(t, "source", source, "at", tt.at))
			if got := strings.Join(s.rows, ""); got != tt.want || strings.Join(s.notes, ";") != tt.note {
				t.Errorf("%s %s: %q, notes %q", source, tt.at, got, s.notes)
			}
		}
	}
	for at, want := range map[string]string{
		"/2": "a.diff has 2 files", "/0/hunks/2": "f has 2 hunks", "/x": "neither", "": "neither", "/0/hunks": "neither",
		"/01": "neither", "/-1": "neither", "/0/lines/1": "neither", "/0/hunks/0/at": "neither",
	} {
		s := &sheet{room: wide}
		if err := s.run(src, arguments(t, "source", "a.diff", "at", at)); err == nil ||
			!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "/N/hunks/M") {
			t.Errorf("%s: %v, want %q", at, err, want)
		}
	}
	if err := (&sheet{room: wide}).run(src, arguments(t, "source", "a.diff", "at", "/0", "records", "0")); err == nil {
		t.Error("at with records: no error")
	}
}

// TestSliceCutDiff notes that a diff is cut with the file in which it breaks off, and where all files were read.
func TestSliceCutDiff(t *testing.T) {
	src, _ := shelf(t, map[string]string{
		"a.diff": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/g b/g\nindex 1..2 100644\n--- a/",
	})
	for _, tt := range []struct{ name, value, note string }{
		{"at", "/0", ""},
		{"at", "/1", "g is truncated: its header is incomplete"},
		{"records", "0-", "a.diff: breaks off inside file 1, g: its header is incomplete"},
	} {
		s := cut(t, src, arguments(t, "source", "a.diff", tt.name, tt.value))
		if got := strings.Join(s.notes, ";"); got != tt.note {
			t.Errorf("%s: notes %q", tt.value, got)
		}
	}
}
