//go:build !portable

package tree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"golang.org/x/sys/unix"
)

// The tree is deeper than any path may be, and than there are descriptors, and each level has work left on the way
// back.
func TestWalkOfADeepTree(t *testing.T) {
	const deep = 5_000
	dir := t.TempDir()
	fd := expect.Value(unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
	t.Cleanup(func() { flatten(t, dir) })
	mkfile := func(name string) {
		at := expect.Value(unix.Openat(fd, name, unix.O_CREAT|unix.O_CLOEXEC, 0o600))(t)
		_ = unix.Close(at)
	}
	mkdir := func(name string) {
		expect.Must(t, unix.Mkdirat(fd, name, 0o700))
	}
	const every = 8 // levels: on one of them is a file, and a directory to go into on the way back
	for i := range deep {
		mkdir("d")
		if i%every == 0 {
			mkfile("a")
			mkdir("z")
		}
		next := expect.Value(unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
		_ = unix.Close(fd)
		fd = next
	}
	_ = unix.Close(fd)
	r := open(t, dir)
	before, most := descriptors(t), int64(0)
	dirs, files, longest, n := 0, 0, 0, 0
	report, err := r.Walk(t.Context(), Options{}, func(e Entry) error {
		if e.Type == Dir {
			dirs++
		} else {
			files++
		}
		longest = max(longest, len(e.Path))
		if n++; n%1000 == 0 {
			most = max(most, descriptors(t)-before)
		}
		return nil
	})
	if err != nil || dirs != deep+deep/every || files != deep/every || longest != 2*deep-1 || report.Unreadable != 0 ||
		int(report.Dirs) != dirs {
		t.Errorf("%d directories, %d files, longest %d, %+v, %v", dirs, files, longest, report, err)
	}
	if most > maxOpen+20 {
		t.Errorf("%d descriptors open at once", most)
	}
	if left := descriptors(t) - before; left > 2 {
		t.Errorf("%d descriptors left open", left)
	}
}

// flatten removes a chain of directories too deep for os.RemoveAll.
func flatten(t *testing.T, dir string) {
	at, up := filepath.Join(dir, "d"), filepath.Join(dir, "up")
	for {
		err := os.Rename(filepath.Join(at, "d"), up)
		if e := os.RemoveAll(at); e != nil {
			t.Error(e)
			return
		}
		if err != nil {
			return
		}
		if err := os.Rename(up, at); err != nil {
			t.Error(err)
			return
		}
	}
}
