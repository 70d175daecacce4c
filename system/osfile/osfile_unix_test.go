//go:build unix

package osfile

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestOpenOwn(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	expect.Must(t, os.WriteFile(in("plain"), []byte("x"), 0o600))
	expect.Must(t, os.Symlink("plain", in("link")))
	expect.Must(t, os.Symlink("none", in("dangling")))
	expect.Must(t, os.Mkdir(in("dir"), 0o700))
	expect.Must(t, os.Symlink("dir", in("linked")))
	expect.Must(t, os.WriteFile(in("dir/inside"), []byte("x"), 0o600))
	expect.Must(t, syscall.Mkfifo(in("fifo"), 0o600))
	socket := expect.Value(net.Listen("unix", in("socket")))(t)
	defer func() { _ = socket.Close() }()
	foreign := "/etc/passwd"
	if os.Geteuid() == 0 {
		foreign = in("foreign")
		expect.Must(t, os.WriteFile(foreign, nil, 0o644))
		expect.Must(t, os.Chown(foreign, 65534, 65534))
	}
	for path, want := range map[string]error{
		in("plain"): nil, in("linked/inside"): nil, in("link"): ErrLink, in("dangling"): ErrLink,
		in("dir"): ErrNotRegular, in("fifo"): ErrNotRegular, in("socket"): ErrNotRegular, "/dev/null": ErrNotRegular,
		foreign: ErrForeign, in("none"): fs.ErrNotExist,
	} {
		f, info, err := OpenOwn(path)
		expect.ErrorIs(t, err, want, path)
		expect.Equal(t, err == nil, want == nil, path)
		if err == nil {
			expect.Equal(t, info.Size(), 1, "%s: bytes", path)
			_ = f.Close()
		}
	}
	for name, ok := range map[string]bool{"dir": true, "linked": false, "plain": false, "fifo": false, "none": false} {
		root, err := OpenDir(in(name))
		expect.Equal(t, err == nil, ok, "directory %s: %v", name, err)
		if err == nil {
			_ = root.Close()
		}
	}
}

func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f := expect.Value(os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))(t)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	a, b := open(), open()
	for i, step := range []struct {
		f     *os.File
		alone bool
		want  bool
	}{
		{a, true, true}, {b, true, false}, {b, false, false}, {a, true, true},
	} {
		if ok, err := TryLock(step.f, step.alone); ok != step.want || err != nil {
			t.Errorf("step %d: %v, %v", i, ok, err)
		}
	}
	Unlock(a)
	for _, f := range []*os.File{a, b} { // shared
		if ok, err := TryLock(f, false); !ok || err != nil {
			t.Errorf("shared: %v, %v", ok, err)
		}
	}
}

func TestReadAndReplaceIn(t *testing.T) {
	dir := t.TempDir()
	root := expect.Value(OpenDir(dir))(t)
	defer root.Close() //nolint:errcheck // the files are closed
	expect.Must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	expect.Must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	expect.Must(t, os.WriteFile(filepath.Join(dir, "tmp"), []byte("of a process that ended"), 0o600))
	expect.Must(t, ReplaceIn(root, "file", "tmp", []byte("12345")))
	expect.Equal(t, string(expect.Value(ReadIn(root, "file", 5))(t)), "12345")
	for _, k := range []struct {
		name  string
		limit int64
		want  error
	}{
		{"file", 4, ErrTooLong}, {"fifo", 9, ErrNotRegular}, {"dir", 9, ErrNotRegular}, {"none", 9, fs.ErrNotExist},
	} {
		expect.ErrorIs(t, expect.Err(ReadIn(root, k.name, k.limit)), k.want, k.name)
	}
	expect.Fails(t, ReplaceIn(root, "dir", "tmp", nil), "", "a directory is replaced")
	expect.ErrorIs(t, expect.Err(os.Lstat(filepath.Join(dir, "tmp"))), fs.ErrNotExist, "the temporary file stays")
}
