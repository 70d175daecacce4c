package index

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
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
