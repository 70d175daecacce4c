package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	plant(
		t, dir, "a.b", "a/b", "a/c/d.go", "a0", "B", "link -> a", "out -> /", ".git/HEAD", ".git/hooks/x", ".hid/.git/x",
		".hid/y", ".dot", "z/.git", "z/q.go", "e/",
	)
	r := open(t, dir)
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"all that shows", Options{}, "B a a/b a/c a/c/d.go a.b a0 e link out z z/q.go"},
		{"all", Options{All: true}, ".dot .git .hid .hid/.git .hid/y B a a/b a/c a/c/d.go a.b a0 e link out z z/.git z/q.go"},
		{"one level", Options{Depth: 1}, "B a a.b a0 e link out z"},
		{"two levels", Options{Depth: 2, Start: "a"}, "a/b a/c a/c/d.go"},
		{"start", Options{Start: "./a/c/"}, "a/c/d.go"},
		{"start hidden", Options{Start: ".hid"}, ".hid/y"},
		{"start a link", Options{Start: "link"}, "link/b link/c link/c/d.go"},
		{"glob", Options{Glob: expect.Value(CompileGlob("*.go"))(t)}, "a/c/d.go z/q.go"},
		{"glob below start", Options{Glob: expect.Value(CompileGlob("c/*"))(t), Start: "a"}, "a/c/d.go"},
		{"glob of directories", Options{Glob: expect.Value(CompileGlob("{a,z}"))(t)}, "a z"},
	} {
		for _, o := range []Options{{}, {Ahead: true}, {Stat: true}} {
			test.o.Ahead, test.o.Stat = o.Ahead, o.Stat
			expect.Equal(t, strings.Join(list(t, r, test.o), " "), test.want, test.name)
		}
	}
	types := map[string]Type{}
	sizes := map[string]int64{}
	report, err := r.Walk(t.Context(), Options{Stat: true}, func(e Entry) error {
		types[e.Path], sizes[e.Path] = e.Type, e.Size
		if time.Since(e.Modified) > time.Hour || e.Modified.IsZero() {
			t.Errorf("%s: modified %v", e.Path, e.Modified)
		}
		return nil
	})
	if err != nil || types["a"] != Dir || types["link"] != Link || types["out"] != Link || types["a/c/d.go"] != File ||
		sizes["a/c/d.go"] != 8 {
		t.Errorf("%v %v %v", err, types, sizes)
	}
	// .git is not an entry passed over: nothing shows it
	if want := (Report{Dirs: 4, Files: 8, Ignored: 2}); report != want {
		t.Errorf("%+v", report)
	}
}

func TestWalkEnds(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "a/b/c", "a/d", "e/f", "g", ".git/config")
	r := open(t, dir)
	visit := func(at string, answer error) (got []string, err error) {
		_, err = r.Walk(t.Context(), Options{}, func(e Entry) error {
			got = append(got, e.Path)
			if e.Path == at {
				return answer
			}
			return nil
		})
		return got, err
	}
	if got, err := visit("a/b", SkipAll); err != nil || !slices.Equal(got, []string{"a", "a/b"}) {
		t.Errorf("SkipAll: %q %v", got, err)
	}
	odd := errors.New("odd")
	if got, err := visit("e/f", odd); !errors.Is(err, odd) || len(got) != 6 {
		t.Errorf("an error: %q %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := r.Walk(ctx, Options{}, func(Entry) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n > 2 {
		t.Errorf("cancelled: %d entries, %v", n, err)
	}
	for start, want := range map[string]string{".git": "never entered", ".git/config": "never entered", "g": "it is a file", "nothing": "no such file", "../x": "outside the root", "a\x00": "NUL"} {
		expect.Fails(t, expect.Err(r.Walk(
			t.Context(), Options{Start: start}, func(Entry) error { t.Error("visited"); return nil },
		)), want, "start %q", start)
	}
}

// A directory of many names, and many directories: sorted, complete, and cancelled at once.
func TestWalkOfManyNames(t *testing.T) {
	dir := t.TempDir()
	const many = 6_000
	for i := range many {
		f := expect.Value(os.OpenFile(filepath.Join(dir, fmt.Sprintf("%x", i*7919%many)), os.O_CREATE, 0o600))(t)
		_ = f.Close()
	}
	last, n := "", 0
	told := int64(0)
	r := open(t, dir)
	_, err := r.Walk(t.Context(), Options{Progress: func(r Report) { told = r.Files }}, func(e Entry) error {
		if e.Path <= last {
			t.Fatalf("%s after %s", e.Path, last)
		}
		last = e.Path
		n++
		return nil
	})
	if err != nil || n != many || told < many/2 {
		t.Errorf("%d names, %v, progress told %d", n, err, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if report, err := r.Walk(
		ctx, Options{}, func(Entry) error { t.Error("visited"); return nil },
	); !errors.Is(err, context.Canceled) || report.Dirs > 0 {
		t.Errorf("cancelled: %+v %v", report, err)
	}
}

// Progress is reported even if few entries take long.
func TestSlowWalkTellsProgress(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d"} {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	r := open(t, dir)
	for pause, want := range map[time.Duration][]int64{600 * time.Millisecond: {2}, 2 * time.Second: {1, 2, 3}, time.Millisecond: nil} {
		synctest.Test(t, func(t *testing.T) {
			var told []int64
			_, err := r.Walk(t.Context(), Options{Progress: func(r Report) { told = append(told, r.Files) }}, func(Entry) error {
				time.Sleep(pause)
				return nil
			})
			if err != nil || !slices.Equal(told, want) {
				t.Errorf("%v an entry: told after %d entries, want %d (%v)", pause, told, want, err)
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	r := open(b, peer.GoSource(b))
	tests := expect.Value(CompileGlob("**/*_test.go"))(b)
	for name, o := range map[string]Options{"names": {}, "stat": {Stat: true}, "glob": {Glob: tests}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = 0
				expect.Value(r.Walk(b.Context(), o, func(Entry) error { n++; return nil }))(b)
			}
			b.ReportMetric(float64(n), "entries")
		})
	}
}
