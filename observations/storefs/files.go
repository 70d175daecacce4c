// Package storefs performs the file operations of an observation store: below one directory, without following links
// out of it, and with errors that name files relative to the store.
//
// Tests use it to make operations fail.
package storefs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// The directories of a store.
const (
	ObservationsDir = "observations"
	TmpDir          = "tmp"
	StateDir        = "state"
)

// FS performs all file operations of a store, below one directory that it keeps open. [os.Root] resolves names, so that
// no link leads out of that directory. Open accepts only regular files. Names are relative to the store, with slashes.
type FS struct {
	root *os.Root
	Dirs map[string]*os.Root // subdirectories of the store, opened once
	self *os.File            // the store's directory, to ask for free space

	// Unwritable is why a subdirectory is missing and could not be created: then nothing can be written.
	Unwritable error

	// Fault is called before every operation in tests. If it returns an error, the operation fails with that error; a
	// write then writes half of its bytes, as on a full disk.
	Fault func(op, name string) error
	// Free replaces the free space of the disk in tests.
	Free func() (int64, error)
}

// File is an open file of a store.
type File struct {
	*os.File
	Name string
	disk *FS
}

func (f *FS) check(op, name string) error {
	if f.Fault == nil {
		return nil
	}
	return wrap(op, name, f.Fault(op, name))
}

// do runs an operation whose only result is an error.
func (f *FS) do(op, name string, run func() error) error {
	if err := f.check(op, name); err != nil {
		return err
	}
	return wrap(op, name, run())
}

// wrap shortens an error to the name below the store: the model may read it, and it must neither repeat a long path nor
// reveal where the store is.
func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var (
		path *fs.PathError
		link *os.LinkError
		call *os.SyscallError
	)
	for {
		switch {
		case errors.As(err, &path):
			err = path.Err
		case errors.As(err, &link):
			err = link.Err
		case errors.As(err, &call):
			err = call.Err
		default:
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
}

// resolve returns the directory of a name, and the base name.
func (f *FS) resolve(name string) (*os.Root, string) {
	if dir, base, ok := strings.Cut(name, "/"); ok {
		if r := f.Dirs[dir]; r != nil {
			return r, base
		}
	}
	return f.root, name
}

// Create creates a new file, readable and writable by the user only.
func (f *FS) Create(name string) (*File, error) {
	if err := f.check("create", name); err != nil {
		return nil, err
	}
	if f.Unwritable != nil {
		return nil, f.Unwritable
	}
	root, base := f.resolve(name)
	h, err := root.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, wrap("create", name, err)
	}
	return &File{h, name, f}, nil
}

// maxOpens is how often Open tries if another process renames a new file over the name meanwhile, such as a tombstone
// over a sidecar. Either of the two files is correct.
const maxOpens = 100

// Open opens a regular file for reading; with write also for writing, and creates it if missing.
func (f *FS) Open(name string, write bool) (h *File, err error) {
	if err := f.check("open", name); err != nil {
		return nil, err
	}
	if write && f.Unwritable != nil {
		return nil, f.Unwritable
	}
	for range maxOpens {
		if h, err = f.openOnce(name, write); !errors.Is(err, errChanged) {
			break
		}
	}
	return h, err
}

func (f *FS) openOnce(name string, write bool) (*File, error) {
	root, base := f.resolve(name)
	if write {
		h, err := root.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return &File{h, name, f}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, wrap("create", name, err)
		}
	}
	before, err := root.Lstat(base)
	if err != nil {
		return nil, wrap("open", name, err)
	}
	if !before.Mode().IsRegular() {
		return nil, wrap("open", name, ErrNotRegular)
	}
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	h, err := root.OpenFile(base, flag|osfile.Nonblock, 0) // must not block if the file was replaced by a pipe
	if err != nil {
		return nil, wrap("open", name, err)
	}
	// os.Root follows links that stay inside: compare the opened file with the one that was checked.
	if after, err := h.Stat(); err != nil || !os.SameFile(before, after) {
		_ = h.Close()
		return nil, wrap("open", name, errChanged)
	}
	return &File{h, name, f}, nil
}

// Errors of files that are not read.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLong    = errors.New("it is longer than such a file may be")
	errChanged    = errors.New("it was replaced while it was opened")
)

// Read returns the content of a file of at most max bytes, and its FileInfo.
func (f *FS) Read(name string, max int64) ([]byte, fs.FileInfo, error) {
	h, err := f.Open(name, false)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = h.File.Close() }()
	info, err := h.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > max {
		return nil, nil, wrap("read", name, ErrTooLong)
	}
	b, err := h.ReadAll(max, info.Size())
	return b, info, err
}

// Stat describes a name without following a link.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	if err := f.check("stat", name); err != nil {
		return nil, err
	}
	root, base := f.resolve(name)
	info, err := root.Lstat(base)
	return info, wrap("stat", name, err)
}

// Rename renames a file within the store.
func (f *FS) Rename(from, to string) error {
	return f.do("rename", to, func() error { return f.root.Rename(from, to) })
}

// Remove removes a file. A missing file is no error.
func (f *FS) Remove(name string) error {
	return f.do("remove", name, func() error {
		root, base := f.resolve(name)
		if err := root.Remove(base); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Touch sets the time of last use.
func (f *FS) Touch(name string, at time.Time) error {
	root, base := f.resolve(name)
	return f.do("touch", name, func() error { return root.Chtimes(base, at, at) })
}

// VisitNames calls visit for each name in a directory, in no order, and whether it is a regular file. It reads 1,024
// names at a time.
func (f *FS) VisitNames(dir string, visit func(name string, regular bool)) error {
	if err := f.check("list", dir); err != nil {
		return err
	}
	d := f.Dirs[dir]
	if d == nil {
		return f.Unwritable
	}
	h, err := d.Open(".")
	if err != nil {
		return wrap("list", dir, err)
	}
	defer func() { _ = h.Close() }()
	for {
		entries, err := h.ReadDir(1024)
		for _, e := range entries {
			visit(e.Name(), e.Type().IsRegular())
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return wrap("list", dir, err)
		}
	}
}

// SyncDir makes the names in a directory survive a power loss.
func (f *FS) SyncDir(dir string) error {
	if err := f.check("sync", dir); err != nil {
		return err
	}
	h, err := f.Dirs[dir].Open(".")
	if err != nil {
		return wrap("sync", dir, err)
	}
	defer func() { _ = h.Close() }()
	return wrap("sync", dir, syncDirectory(h))
}

// FreeBytes returns how many bytes this user may still write to the disk.
func (f *FS) FreeBytes() (int64, error) {
	if err := f.check("free", "."); err != nil {
		return 0, err
	}
	if f.Free != nil {
		return f.Free()
	}
	n, err := freeBytes(f.self, f.root.Name())
	return n, wrap("free", ".", err)
}

// Close closes all directories. It may be called after a failed OpenDirs.
func (f *FS) Close() {
	for _, d := range f.Dirs {
		_ = d.Close()
	}
	if f.self != nil {
		_ = f.self.Close()
	}
	if f.root != nil {
		_ = f.root.Close()
	}
}

// Write replaces that of [os.File] so that every write passes Fault.
func (f *File) Write(p []byte) (int, error) {
	if err := f.disk.check("write", f.Name); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	n, err := f.File.Write(p)
	return n, wrap("write", f.Name, err)
}

// Overwrite replaces the whole content in place.
func (f *File) Overwrite(p []byte) error {
	if err := f.disk.check("write", f.Name); err != nil {
		_, _ = f.WriteAt(p[:len(p)/2], 0)
		return err
	}
	if _, err := f.WriteAt(p, 0); err != nil {
		return wrap("write", f.Name, err)
	}
	return wrap("write", f.Name, f.Truncate(int64(len(p))))
}

// ReadAt replaces that of [os.File].
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.disk.check("read", f.Name); err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(p, off)
	if err == io.EOF {
		return n, err
	}
	return n, wrap("read", f.Name, err)
}

// ReadAll reads a file of at most max bytes from its start; likely is its size, unless another process is writing to
// it.
func (f *File) ReadAll(max, likely int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(likely, max)) + bytes.MinRead) // enough to find the end in the first read
	if _, err := b.ReadFrom(io.NewSectionReader(f, 0, max+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > max {
		return nil, wrap("read", f.Name, ErrTooLong)
	}
	return b.Bytes(), nil
}

// Stat replaces that of [os.File].
func (f *File) Stat() (fs.FileInfo, error) {
	if err := f.disk.check("stat", f.Name); err != nil {
		return nil, err
	}
	info, err := f.File.Stat()
	return info, wrap("stat", f.Name, err)
}

// Sync replaces that of [os.File].
func (f *File) Sync() error {
	return f.disk.do("sync", f.Name, f.File.Sync)
}

// Close replaces that of [os.File]. It closes the descriptor even if it returns an error.
func (f *File) Close() error {
	err := f.disk.check("close", f.Name)
	if e := f.File.Close(); err == nil {
		err = wrap("close", f.Name, e)
	}
	return err
}

// TryLock locks the file if it is free, shared or exclusively (alone). The lock ends when the file is closed or the
// process dies.
func (f *File) TryLock(alone bool) (bool, error) {
	if err := f.disk.check("lock", f.Name); err != nil {
		return false, err
	}
	ok, err := osfile.TryLock(f.File, alone)
	return ok, wrap("lock", f.Name, err)
}

// UnlockAndClose unlocks a file that was locked exclusively, and closes it. Closing alone would leave it locked while a
// process is being started: until exec the child has all files open that are open here.
func (f *File) UnlockAndClose() {
	osfile.Unlock(f.File)
	_ = f.File.Close()
}

// isLinked reports whether the open file still exists under its name.
func (f *File) isLinked() (bool, error) {
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := f.disk.Stat(f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(open, named), err
}

// LockLinked locks the file if it is free and still exists under its name.
func (f *File) LockLinked(alone bool) (bool, error) {
	ok, err := f.TryLock(alone)
	if ok && err == nil {
		ok, err = f.isLinked()
	}
	return ok && err == nil, err
}
