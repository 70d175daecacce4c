package fs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// TestStatNamesALanguage: every text has a language, by the name of the file or else by its kind.
func TestStatNamesALanguage(t *testing.T) {
	texts := map[string][2]string{ // text and language
		"main.go": {
			"package main\n",
			"Go",
		}, "MAKEFILE": {"all:\n", "Makefile"}, "LICENSE": {"Permission is granted\n", "Text"},
		"rows.tsv": {"a\tb\n1\t2\n", "TSV"}, "export": {"a,b,c\n1,2,3\n4,5,6\n", "CSV"}, "dump": {`{"a":1}`, "JSON"},
		"events": {"{\"a\":1}\n{\"a\":2}\n", "JSON"}, "fix.patch": {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "Diff"},
		"change": {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "Diff"}, "notes": {"# A\n\nb\n\n# C\n\nd\n", "Markdown"},
		"out.1": {strings.Repeat("2026-11-20 10:00:00 INFO a\n", 9), "Log"},
		"commit": {
			"commit " + strings.Repeat(
				"a1",
				20,
			) + "\nAuthor: A <a@b.c>\nDate:   Thu Nov 20 10:00:00 2026 +0100\n\n    S\n",
			"Git log",
		},
		"empty": {"", "Text"}, "data.bin": {"\x00\x01\x02\xff", ""},
	}
	dir := t.TempDir()
	for name, x := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(x[0]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := call(t, Find(), toolstest.Roots(t, dir), `{"show":"stat"}`)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(a.String()) {
		var r struct{ Path, Kind, Language string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if n++; r.Language != texts[r.Path][1] {
			t.Errorf("%s (%s): %q, want %q", r.Path, r.Kind, r.Language, texts[r.Path][1])
		}
	}
	if n != len(texts) {
		t.Errorf("%d files of %d", n, len(texts))
	}
}
