package index

import (
	"bytes"
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/embed"
)

func everyFile(string) bool { return true }

// TestVectors finds passages by their vectors. A vector goes with its passage, and one that comes too late is dropped.
func TestVectors(t *testing.T) {
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "index", "a.db"))
	expect.Must(t, err)
	defer func() { _ = x.Close() }()
	s := store{"a.txt": "alpha", "d/b.txt": "beta", "d/c.txt": "gamma"}
	refresh := func() {
		t.Helper()
		var read []string
		if status, err := x.Refresh(t.Context(), s.files(), s.options(&read)); err != nil || !status.whole() {
			t.Fatal(status, err)
		}
	}
	count := func(passages, vectors int) {
		t.Helper()
		if _, p, v, err := x.Nearest(t.Context(), nil, 0, 9, 9, everyFile); p != passages || v != vectors || err != nil {
			t.Errorf("%d of %d passages have vectors, want %d of %d; %v", v, p, vectors, passages, err)
		}
	}
	refresh()
	expect.OK(t, x.UseModel(t.Context(), "m"))
	hits, err := x.WithoutVector(t.Context(), Hit{}, 9)
	if err != nil || len(hits) != 3 {
		t.Fatal(hits, err)
	}
	vectors := [][]float32{{3, 4}, {0, 2}, {1, 1}}
	s["d/c.txt"] = "delta" // after its passage was read
	refresh()
	if err := x.AddVectors(t.Context(), "other", hits, vectors); err == nil || !strings.Contains(err.Error(), "another model") {
		t.Error(err)
	}
	expect.OK(t, x.AddVectors(t.Context(), "m", hits, vectors))
	count(3, 2)
	expect.OK(t, x.UseModel(t.Context(), "m"))
	question := Unit([]float32{9, 0})
	near, _, _, err := x.Nearest(t.Context(), question, 0, 9, 9, everyFile)
	if err != nil || len(near) != 2 || near[0].Path != "a.txt" || math.Abs(near[0].Score-0.3) > 1e-6 {
		t.Errorf("%+v, %v", near, err)
	}
	inD := func(path string) bool { return path == "d/b.txt" }
	if near, _, _, err := x.Nearest(t.Context(), question, 0, 9, 9, inD); err != nil || len(near) != 1 {
		t.Errorf("of one file: %+v, %v", near, err)
	}
	if near, _, _, err := x.Nearest(t.Context(), question, 0.7, 9, 9, everyFile); err != nil || len(near) != 0 {
		t.Errorf("far away: %+v, %v", near, err)
	}
	if _, _, _, err := x.Nearest(t.Context(), Unit([]float32{1, 2, 3}), 0, 9, 9, everyFile); err == nil {
		t.Error("vectors of two lengths were compared")
	}
	rest, err := x.WithoutVector(t.Context(), Hit{}, 9)
	if err != nil || len(rest) != 1 || rest[0].Path != "d/c.txt" {
		t.Errorf("%+v, %v", rest, err)
	}
	if err := x.AddVectors(t.Context(), "m", rest, [][]float32{{1, 2, 3}}); err == nil {
		t.Error("a vector of another length was stored")
	}
	delete(s, "a.txt")
	refresh()
	count(2, 1)
	expect.OK(t, x.UseModel(t.Context(), "other"))
	count(2, 0)
}

// TestNearestMeaning finds passages by their built-in vectors, the nearest first, at most some of one file, and of files
// that are asked alone. A file that changed has those of its new passages, and one that is gone has none.
func TestNearestMeaning(t *testing.T) {
	x, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	expect.Must(t, err)
	defer func() { _ = x.Close() }()
	texts := map[string][]string{
		"a.txt": {"the cat sleeps", "a dog barks", "kittens purr"}, "b.txt": {"the lease ends in March"}, "empty.txt": nil,
	}
	version := "1"
	refresh := func() {
		t.Helper()
		var files []File
		for _, p := range slices.Sorted(maps.Keys(texts)) {
			files = append(files, File{Path: p, Mark: version + p, Size: 9})
		}
		status, err := x.Refresh(t.Context(), files, Options{Read: func(_ context.Context, f File) (Text, error) {
			var text Text
			for i, part := range texts[f.Path] {
				begin := int64(len(text.Body))
				text.Chunks = append(text.Chunks, Chunk{Start: begin, End: begin + int64(len(part)), Line: i + 1})
				text.Body = append(text.Body, part...)
				text.Meanings = append(text.Meanings, embed.Packed(part)...)
			}
			return text, nil
		}})
		if err != nil || !status.whole() {
			t.Fatal(status, err)
		}
	}
	near := func(question string, limit, perFile int, of func(string) bool) (found []string) {
		t.Helper()
		hits, err := x.NearestMeaning(t.Context(), embed.NewQuery(embed.Vector(question)), 0.2, limit, perFile, of)
		expect.Must(t, err)
		for i, h := range hits {
			found = append(found, h.Path+":"+strconv.Itoa(h.Line))
			if i > 0 && h.Score > hits[i-1].Score {
				t.Errorf("%s: %+v", question, hits)
			}
		}
		return found
	}
	refresh()
	expect.EqualList(t, near("feline pets", 9, 9, everyFile), []string{"a.txt:1", "a.txt:2", "a.txt:3"})
	expect.EqualList(t, near("feline pets", 9, 1, everyFile), []string{"a.txt:1"})
	expect.EqualList(t, near("feline pets", 2, 9, everyFile), []string{"a.txt:1", "a.txt:2"})
	expect.EqualList(t, near("when does the tenancy terminate", 1, 9, everyFile), []string{"b.txt:1"})
	expect.EqualList(t, near("when does the tenancy terminate", 1, 9, func(p string) bool { return p == "empty.txt" }), nil)
	texts["a.txt"], version = []string{"invoice of June", "kittens purr"}, "2"
	delete(texts, "b.txt")
	refresh()
	expect.EqualList(t, near("feline pets", 9, 9, everyFile), []string{"a.txt:2"})
	expect.EqualList(t, near("when does the tenancy terminate", 9, 9, everyFile), nil)
}

// BenchmarkNearestMeaning compares 50,000 passages of 1,000 files with a question.
func BenchmarkNearestMeaning(b *testing.B) {
	x, err := Open(b.Context(), filepath.Join(b.TempDir(), "a.db"))
	expect.Must(b, err)
	defer func() { _ = x.Close() }()
	part := embed.Packed("the lease of the flat in the third floor ends in March")
	var files []File
	for i := range 1000 {
		files = append(files, File{Path: strconv.Itoa(i), Mark: "1", Size: 50})
	}
	_, err = x.Refresh(b.Context(), files, Options{Read: func(context.Context, File) (Text, error) {
		return Text{Body: make([]byte, 50), Chunks: make([]Chunk, 50), Meanings: bytes.Repeat(part, 50)}, nil
	}})
	expect.Must(b, err)
	to := embed.NewQuery(embed.Vector("when does the tenancy terminate"))
	for b.Loop() {
		if hits, err := x.NearestMeaning(b.Context(), to, 0.99, 200, 20, everyFile); err != nil || len(hits) != 0 {
			b.Fatal(len(hits), err)
		}
	}
}
