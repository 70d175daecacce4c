package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"golang.org/x/sys/unix"
)

// within fails the test if f hangs.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s hangs", what)
	}
}

// A special file neither blocks nor is read, by any operation.
func TestSpecialFilesNeverHang(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "file", "dir/", "sub/x", "to-fifo -> fifo", "to-zero -> zero", "store/")
	// The socket is created by mknod: the path of a test directory may be too long for a socket address.
	for name, mode := range map[string]uint32{"fifo": unix.S_IFIFO, "sub/.gitignore": unix.S_IFIFO, "socket": unix.S_IFSOCK} {
		expect.Must(t, unix.Mknod(filepath.Join(dir, name), mode|0o600, 0))
	}
	special := []string{"fifo", "to-fifo", "dir", "socket"}
	for name, minor := range map[string]uint32{"zero": 5, "null": 3, "full": 7} {
		if err := unix.Mknod(filepath.Join(dir, name), unix.S_IFCHR|0o600, int(unix.Mkdev(1, minor))); err == nil {
			special = append(special, name)
		} else {
			t.Logf("no device %s: %v", name, err)
		}
	}
	for _, r := range []*Root{open(t, dir), open(t, dir, filepath.Join(dir, "store"))} {
		for _, name := range special {
			within(t, 30*time.Second, name, func() {
				if _, _, err := r.OpenFile(name); !errors.Is(err, ErrNotFile) {
					t.Errorf("open %s: %v", name, err)
				}
				expect.OK(t, expect.Err(r.Stat(name)), "stat %s", name)
				if _, err := r.Walk(
					t.Context(), Options{Start: name}, func(Entry) error { return nil },
				); (err == nil) != (name == "dir") {
					t.Errorf("walk %s: %v", name, err)
				}
			})
		}
		within(t, 30*time.Second, "the walk", func() {
			types := map[string]Type{}
			expect.OK(t, expect.Err(r.Walk(t.Context(), Options{}, func(e Entry) error { types[e.Path] = e.Type; return nil })))
			if types["fifo"] != Other || types["socket"] != Other || types["sub/x"] != File {
				t.Errorf("%v", types)
			}
		})
	}
	if big, err := os.Create(filepath.Join(dir, "sparse")); err != nil || big.Truncate(1<<40) != nil {
		t.Log("no sparse file of 1 TiB here")
	} else if _, at, err := open(t, dir).OpenFile("sparse"); err != nil || at.Size() != 1<<40 {
		t.Errorf("sparse: %v", err)
	}
}

// asNobody runs f in a thread without permissions on the user's files.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	within(t, 30*time.Second, "nobody", func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		if err := unix.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		f()
	})
}

func TestUnreadableIsCounted(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "a/x", "b/x", "c/x", "file", "rules/.gitignore", "rules/x")
	for _, name := range []string{".", "a", "b", "c", "rules"} { // which nobody may enter where the umask says so
		expect.Must(t, os.Chmod(filepath.Join(dir, name), 0o755))
	}
	r := open(t, dir)
	for _, name := range []string{"b", "file", "rules/.gitignore"} {
		expect.Must(t, os.Chmod(filepath.Join(dir, name), 0))
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "b"), 0o700) })
	asNobody(t, func() {
		var got []string
		report, err := r.Walk(t.Context(), Options{}, func(e Entry) error { got = append(got, e.Path); return nil })
		want := []string{"a", "a/x", "b", "c", "c/x", "file", "rules", "rules/x"}
		if err != nil || report.Unreadable != 1 || !slices.Equal(got, want) {
			t.Errorf("%q %+v %v", got, report, err)
		}
		if _, _, err := r.OpenFile("file"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("open: %v", err)
		}
		expect.ErrorIs(t, expect.Err(r.Walk(
			t.Context(), Options{Start: "b"}, func(e Entry) error { return nil },
		)), fs.ErrPermission, "start")
	})
}

func descriptors(t *testing.T) int64 {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("/proc is not mounted: descriptors cannot be counted")
	}
	return int64(len(all))
}

// A walk of a tree that is being changed ends and leaves no descriptor open.
func TestWalkOfAChangingTree(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		plant(t, dir, fmt.Sprintf("%d/a/b/c/d", i))
	}
	r := open(t, dir)
	before := descriptors(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := 0; i < 20; i += 2 {
		swapping(t, &wg, stop, nil, fmt.Sprintf("%s/%d/a", dir, i), fmt.Sprintf("%s/%d/a/b", dir, i+1))
	}
	for range 100 {
		expect.OK(t, expect.Err(r.Walk(t.Context(), Options{Stat: true}, func(Entry) error { return nil })))
	}
	close(stop)
	wg.Wait()
	if left := descriptors(t) - before; left > 1 {
		t.Errorf("%d descriptors left open", left)
	}
}
