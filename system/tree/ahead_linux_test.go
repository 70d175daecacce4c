package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// many creates a tree larger than a walk runs ahead: directories of few files, of which every third is ignored.
func many(t testing.TB) *Root {
	t.Helper()
	dir := t.TempDir()
	for i := range 600 {
		name := filepath.Join(dir, fmt.Sprintf("%02d/%d/f", i%40, i%7))
		expect.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		for _, end := range []string{".a", ".b", ".c"} {
			expect.Must(t, os.WriteFile(fmt.Sprint(name, i, end), make([]byte, i), 0o600))
		}
	}
	plant(t, dir, "link -> 00")
	expect.Must(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.b\n"), 0o600))
	return open(t, dir)
}

// The walk ends when visits have ended, even if it finds no more entries to send.
func TestWalkAheadThatFindsNothingMoreEnds(t *testing.T) {
	none := expect.Value(CompileGlob("**/none"))(t)
	w := &walker{
		root: many(t), o: Options{Ahead: true, Glob: none}, ctx: t.Context(), shared: &shared{},
		budget: ownRoom,
	}
	defer w.closeAll()
	expect.Must(t, w.begin("."))
	w.ahead = &ahead{quit: make(chan struct{}), filling: &batch{}, size: firstBatch}
	close(w.ahead.quit)
	if err := w.run(); !errors.Is(err, errQuit) || w.visited > 2*checkEvery {
		t.Errorf("%v after %d entries", err, w.visited)
	}
}

// A walk that runs ahead finds the same entries as one that does not, each with its own size and time if asked for.
func TestWalkAheadFindsTheSame(t *testing.T) {
	r := many(t)
	walk := func(o Options, check func(Entry)) (found []string, report Report) {
		report = expect.Value(r.Walk(t.Context(), o, func(e Entry) error {
			found = append(found, e.Path+" "+string(e.Type))
			check(e)
			return nil
		}))(t)
		return found, report
	}
	want, plainly := walk(Options{}, func(Entry) {})
	if len(want) < 1200 {
		t.Fatal(len(want))
	}
	for _, o := range []Options{{Ahead: true}, {Stat: true, Hold: true}, {Stat: true, Type: Dir}} {
		held := 0
		got, report := walk(o, func(e Entry) {
			if e.In != nil {
				held++
				e.In.Release()
				expect.Equal(t, e.Type, File, "%s, a, is handed out", e.Path)
			}
			if described := !e.Modified.IsZero(); described != (o.Stat && (o.Type == "" || o.Type == e.Type)) {
				t.Errorf("%+v: %s, a %s: described %t", o, e.Path, e.Type, described)
			} else if at := expect.Value(r.Lstat(e.Path))(t); described && (e.Size != at.Size() ||
				!e.Modified.Equal(at.ModTime()) || e.Type != kindOf(at.Mode()).typeOf()) {
				t.Errorf("%+v, but it is %v of %d bytes at %v", e, at.Mode(), at.Size(), at.ModTime())
			}
		})
		if report != plainly || !slices.Equal(got, want) || (held > 0) != o.Hold {
			t.Errorf("%+v: %d entries, %d held, %+v; want %d, %+v", o, len(got), held, report, len(want), plainly)
		}
	}
}

// However a walk that runs ahead is ended, its goroutine has ended when Walk returns, and the report covers the visited
// entries.
func TestWalkAheadEnds(t *testing.T) {
	r := many(t)
	odd := errors.New("odd")
	for i, stopAt := range []int{1, 20, 700, 1, 700} {
		for _, answer := range []error{SkipAll, odd} {
			synctest.Test(t, func(t *testing.T) { // which fails where a goroutine is left
				visited, dirs := 0, int64(0)
				report, err := r.Walk(t.Context(), Options{Stat: i < 3, Ahead: true}, func(e Entry) error {
					if e.Type == Dir {
						dirs++
					}
					if visited++; visited == stopAt {
						return answer
					}
					return nil
				})
				if errors.Is(answer, SkipAll) && err != nil || errors.Is(answer, odd) && !errors.Is(err, odd) ||
					visited != stopAt || report.Dirs != dirs || report.Files != int64(visited)-dirs {
					t.Errorf("%v at %d: %d visited, %d of them directories, %+v, %v", answer, stopAt, visited, dirs, report, err)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		before := descriptors(t)
		defer func() {
			expect.Equal(t, recover(), "a defect", "a panic did not pass")
			if left := descriptors(t) - before; left > 0 {
				t.Errorf("%d descriptors left open", left)
			}
		}()
		_, _ = r.Walk(t.Context(), Options{Stat: true}, func(e Entry) error {
			if e.Type == File {
				panic("a defect")
			}
			return nil
		})
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := r.Walk(ctx, Options{Stat: true}, func(Entry) error { n++; cancel(); return nil })
		if !errors.Is(err, context.Canceled) || n > largestBatch {
			t.Errorf("cancelled: %d entries, %v", n, err)
		}
	})
}

// Entries removed while the walk was ahead of the visits are skipped.
func TestWalkAheadOfARemoval(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "a", "b", "c", "d/e")
	r := open(t, dir)
	var got []string
	_, err := r.Walk(t.Context(), Options{Stat: true}, func(e Entry) error {
		got = append(got, e.Path)
		if err := os.Remove(filepath.Join(dir, "b")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	expect.OK(t, err)
	expect.EqualList(t, got, []string{"a", "c", "d", "d/e"})
}

func TestSlowVisitsTellProgress(t *testing.T) {
	r := many(t)
	synctest.Test(t, func(t *testing.T) {
		var told []int64
		visited := 0
		_, err := r.Walk(t.Context(), Options{Stat: true, Progress: func(r Report) { told = append(told, r.Files) }}, func(Entry) error {
			if visited++; visited == 8 {
				return SkipAll
			}
			time.Sleep(reportAfter / 2)
			return nil
		})
		if err != nil || len(told) != 3 || !slices.IsSorted(told) {
			t.Errorf("told after %d files: %v", told, err)
		}
	})
}
