package fs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// TestStatReadsFilesAlike: in path order files are read while the tree is walked; in another order after it. The records
// are the same, and come in order.
func TestStatReadsFilesAlike(t *testing.T) {
	files := map[string]string{
		"empty": "", "latin": "na\xefve caf\xe9\n", "bom": "\xef\xbb\xbfa\nb", "wide": "a\x00b\x00\n\x00",
		"binary": "\x00\x01\x02\xff", "bytes.txt": "a\n\xff\xfe\xfd\n", "no end": "a\nb",
	}
	for _, n := range []int{1, 4095, 65534, 65535, 65536, 65537, 300_000} {
		files[fmt.Sprintf("size/%d.log", n)] = strings.Repeat("a line of text\n", n/15+1)[:n]
	}
	for i := range 300 {
		files[fmt.Sprintf("many/%d/%03d.go", i%7, i)] = strings.Repeat("x := y\n", i)
	}
	dir := t.TempDir()
	plant(t, dir, files)
	roots := toolstest.Roots(t, dir)
	records := func(args string) []string {
		a, err := call(t, Find(), roots, args)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(a.String()), "\n")
	}
	byPath, bySize := records(`{"show":"stat"}`), records(`{"show":"stat","sort":"size"}`)
	list := records(`{}`)
	if len(byPath) != len(list) {
		t.Fatalf("%d records, %d are listed", len(byPath), len(list))
	}
	for i := range list {
		if !strings.HasPrefix(byPath[i], strings.TrimSuffix(list[i], "}")) {
			t.Errorf("record %d: %s, listed: %s", i, byPath[i], list[i])
		}
	}
	slices.Sort(byPath)
	slices.Sort(bySize)
	if !slices.Equal(byPath, bySize) {
		t.Errorf("by path:\n%.2000s\nby size:\n%.2000s", strings.Join(byPath, "\n"), strings.Join(bySize, "\n"))
	}
	if few := records(`{"show":"stat","limit":9}`); !slices.Equal(few, records(`{"show":"stat"}`)[:9]) {
		t.Errorf("with a limit: %d records", len(few))
	}
}
