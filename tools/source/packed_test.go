package source_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

func zipOf(t *testing.T, files map[string]string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func tarOf(t *testing.T, files map[string]string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644})
		if err == nil {
			_, err = io.WriteString(w, files[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(t *testing.T, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCompressed: the content of a compressed file is the text of its source, with both sizes in the notes; what is
// damaged is said once.
func TestCompressed(t *testing.T) {
	text := strings.Repeat("2026-03-01 10:00:00 INFO a line of a log\n", 5000)
	stored := gzipped(t, text)
	set := source.Set{Roots: []*tree.Root{workspace(t, "w", map[string]string{
		"app.log.gz": stored, "cut.log.gz": stored[:200], "wide.gz": gzipped(t, "\xff\xfeh\x00i\x00"), "tiny.gz": stored[:5],
		"plain.gz": "only the name\n", "empty.gz": gzipped(t, ""), "a.tar.gz": gzipped(t, tarOf(t, map[string]string{"x": "y"})),
		"twice.gz": gzipped(t, stored), "BZh91AY&SY.txt": "BZh91AY&SY is how bzip2 begins\n",
	})}}
	for _, c := range []struct{ name, text, kind, notes string }{
		{"app.log.gz", text, "log", fmt.Sprintf("decoded from gzip, %d bytes from %d stored", len(text), len(stored))},
		{"cut.log.gz", text[:1], "log", "cut.log.gz is damaged: at byte 200: unexpected EOF; this answer covers only"},
		{"wide.gz", "hi", "text", "decoded from utf-16le in gzip, 6 bytes from"},
		{"tiny.gz", stored[:5], "binary", "begins like a gzip file, but nothing of it can be read (at byte 5: unexpected EOF)"},
		{"plain.gz", "only the name\n", "text", ""},
		{"empty.gz", "", "text", "decoded from gzip, 0 bytes from"},
		{"a.tar.gz", "\x1f\x8b", "binary", ""},
		{"twice.gz", "\x1f\x8b", "binary", "decoded from gzip"},
	} {
		src, err := set.Open(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := src.Text()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !strings.HasPrefix(string(got), c.text) || len(c.text) > 2 && string(got) != c.text {
			t.Errorf("%s: %d bytes of text, want %d: %v", c.name, len(got), len(c.text), err)
		}
		if string(src.Kind()) != c.kind {
			t.Errorf("%s is %s, want %s", c.name, src.Kind(), c.kind)
		}
		notes := strings.Join(src.Notes(), "; ")
		if !strings.Contains(notes, c.notes) || c.notes == "" && notes != "" || strings.Count(notes, "damaged") > 1 {
			t.Errorf("%s: notes %q, want %q", c.name, notes, c.notes)
		}
		if src.Packed() && src.Extent() != int64(len(got)) && c.name != "wide.gz" {
			t.Errorf("%s: %d bytes, said to be %d", c.name, len(got), src.Extent())
		}
		_ = src.Close()
	}
}

// TestArchives: what is on the disk comes first, members are opened by the names that a listing shows, and no name or
// link leads out of the archive.
func TestArchives(t *testing.T) {
	inner := map[string]string{
		"a.txt": "one", "d/e.txt": "two", "../secret.txt": "three", "caf\xe9.txt": "four", "log.gz": gzipped(t, "five"),
		"in.zip": zipOf(t, map[string]string{"x": "six"}), "large": strings.Repeat("x", 100),
	}
	root := workspace(t, "w", map[string]string{
		"a.zip": zipOf(t, inner), "secret.txt": "of the root", "dir.zip/a.txt": "a directory",
		"cut.zip": zipOf(t, inner)[:99], "word.docx": zipOf(t, inner),
		"twice.tar": tarOf(t, map[string]string{"a": "x"})[:1024] + tarOf(t, map[string]string{"a": "last"}),
	})
	set := source.Set{Roots: []*tree.Root{root}, MaxMember: 50, Documents: source.NewDocuments("")}
	for name, want := range map[string]string{
		"a.zip/a.txt": "one", "./a.zip/d/e.txt": "two", `a.zip/\x2e\x2e\x2fsecret.txt`: "three", `a.zip/caf\xe9.txt`: "four",
		"a.zip/log.gz": "five", "dir.zip/a.txt": "a directory", "twice.tar/a": "last",
		"a.zip/../secret.txt": "of the root", filepath.Join(root.Dir(), "a.zip", "a.txt"): "one",
	} {
		if got := textOf(t, func() (*source.Source, error) { return set.Open(t.Context(), name) }); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"a.zip/none": "a.zip has no member none; find path=a.zip lists them", "a.zip/d": "it is a directory",
		"a.zip/in.zip/x": "no member", "a.zip/a.txt/b": "no member", "secret.txt/a": "not a directory",
		"cut.zip/a": "its members from number 1 on", "word.docx/a.txt": "not a directory", "none.zip/a": "no such file",
	} {
		if src, err := set.Open(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, src, err, want)
		}
	}
	src, err := set.Open(t.Context(), "a.zip/large")
	if err != nil || src.Size != 50 || !strings.Contains(src.Caveat(), "its first 50 bytes of 100 (--max-observation)") {
		t.Errorf("a member over the limit: %+v, %v", src, err)
	}
	for name, want := range map[string]int{"a.zip": 8, "a.zip/d": 1, "cut.zip": -1, "word.docx": 1} {
		locations, err := set.Locate(t.Context(), name)
		if err != nil || len(locations) != 1 || locations[0].IsDir == (name == "word.docx") {
			t.Fatalf("%s: %+v, %v", name, locations, err)
		}
		n, notes := 0, []string{}
		_, err = locations[0].List(t.Context(), source.ListOptions{Note: func(n string) { notes = append(notes, n) }},
			func(source.Entry) error { n++; return nil })
		if err != nil || n != max(want, 0) || (want < 0) != (len(notes) == 1) {
			t.Errorf("%s lists %d entries, want %d: %q, %v", name, n, want, notes, err)
		}
	}
}

// TestNested: what is read from a file of its own alone says so where it is compressed or in an archive; an archive may
// follow a script.
func TestNested(t *testing.T) {
	const database, inner = "SQLite format 3\x00", "in.zip"
	archive := zipOf(t, map[string]string{"app.db": database, inner: zipOf(t, map[string]string{"x": "y"})})
	set := source.Set{Roots: []*tree.Root{workspace(t, "w", map[string]string{
		"app.db.gz": gzipped(t, database), "a.zip": archive, "a.zip.gz": gzipped(t, archive), "run": "#!/bin/sh\n" + archive,
		"plain.sh": "#!/bin/sh\n", "text.gz": gzipped(t, "text"),
	})}}
	for name, want := range map[string]string{
		"app.db.gz": "app.db.gz is a SQLite database inside", "a.zip/app.db": "a.zip/app.db is a SQLite database inside",
		"app.db.gz#t": "read app.db.gz#t: app.db.gz is a SQLite database inside", "text.gz#t": "it is no SQLite database",
		"a.zip/app.db#t": "a.zip has no member app.db#t; find path=a.zip lists them; a.zip/app.db is a SQLite database inside",
		"a.zip/in.zip":   "a.zip/in.zip is an archive inside", "a.zip/in.zip/x": "a.zip/in.zip is an archive inside",
		"a.zip.gz": "a.zip.gz is an archive inside", "run/app.db": "run/app.db is a SQLite database inside",
	} {
		src, err := set.Open(t.Context(), name)
		said := fmt.Sprint(err)
		if err == nil {
			said = src.Caveat()
			if src.IsArchive() || src.Kind() != content.Binary {
				t.Errorf("%s is %s", name, src.Kind())
			}
			_ = src.Close()
		}
		if !strings.Contains(said, want) || err == nil && !strings.Contains(said, "unpack it to a file first") {
			t.Errorf("%s: %s; want %s", name, said, want)
		}
	}
	for name, want := range map[string]bool{"run": true, "plain.sh": false, "a.zip.gz": false, "a.zip/in.zip": false} {
		all, err := set.Locate(t.Context(), name)
		if err != nil || len(all) != 1 || all[0].IsDir != want {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	if _, err := set.Locate(t.Context(), "a.zip#t"); err == nil || !strings.Contains(err.Error(), "grep source=a.zip#t searches") {
		t.Errorf("a table in place of a path: %v", err)
	}
}

// TestContents: members are read once while they are listed, in bounded memory; a large one lies in a file that has no
// name. Without releasing, the listing waits until its context ends.
func TestContents(t *testing.T) {
	const size = 70 << 20
	files := map[string]string{"large": strings.Repeat("a line of text\n", size/15), "small": "text"}
	for i := range 8 {
		files[fmt.Sprint(i)] = strings.Repeat("x", 9<<20)
	}
	t.Setenv("TMPDIR", t.TempDir())
	set := source.Set{Roots: []*tree.Root{workspace(t, "w", map[string]string{"a.tar": tarOf(t, files)})}}
	locations, err := set.Locate(t.Context(), "a.tar")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	_, err = locations[0].List(t.Context(), source.ListOptions{Contents: source.NewContents()}, func(e source.Entry) error {
		src, ok, err := e.Held()
		if !ok || err != nil || src.Caveat() != "" || src.Size != int64(len(files[e.Path])) {
			t.Errorf("%s: %v, %v", e.Path, ok, err)
		}
		last := make([]byte, 4)
		if _, err := src.ReadAt(last, src.Size-4); err != nil || string(last) != files[e.Path][src.Size-4:] {
			t.Errorf("%s ends with %q: %v", e.Path, last, err)
		}
		e.Release()
		e.Release()
		n++
		return nil
	})
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); err != nil || n != len(files) || len(left) > 0 {
		t.Errorf("%d of %d members, %d files are left: %v", n, len(files), len(left), err)
	}
	n = 0
	ctx, cancel := context.WithCancel(t.Context())
	_, err = locations[0].List(ctx, source.ListOptions{Contents: source.NewContents()}, func(source.Entry) error {
		if n++; n == 8 {
			cancel() // the next one would wait
		}
		return nil
	})
	if !errors.Is(err, ctx.Err()) || n != 8 {
		t.Errorf("%d members are held at once: %v", n, err)
	}
}
