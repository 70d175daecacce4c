package observations

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// The directories of a store.
const (
	observationsDir = "observations"
	tmpDir          = "tmp"
	stateDir        = "state"
)

// files is all of a store's file I/O, below one directory that is held open:
// names are resolved by [os.Root], so that no link leads out of it, and only
// regular files are opened. Names are relative to the store, with slashes.
type files struct {
	root *os.Root
	dirs map[string]*os.Root // each directory of the store, opened once
	self *os.File            // the store's directory, for what the disk has free

	// lacks says why a directory of the store is absent and could not be made:
	// nothing can be written then.
	lacks error

	// fault stands before every operation; where it returns an error, the
	// operation is not done (a write is done by half, as on a full disk).
	fault func(op, name string) error
	// free replaces what the disk says, in tests of a full one.
	free func() (int64, error)
}

// file is an open file of a store.
type file struct {
	*os.File
	name string
	disk *files
}

func (f *files) check(op, name string) error {
	if f.fault == nil {
		return nil
	}
	return wrap(op, name, f.fault(op, name))
}

// wrap words an error by the name below the store: the model may read it, and
// it must neither repeat a long path nor tell where the store is.
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

// at resolves the directory part of a name.
func (f *files) at(name string) (*os.Root, string) {
	if dir, base, ok := strings.Cut(name, "/"); ok {
		if r := f.dirs[dir]; r != nil {
			return r, base
		}
	}
	return f.root, name
}

// create makes a file that was not there, private.
func (f *files) create(name string) (*file, error) {
	if err := f.check("create", name); err != nil {
		return nil, err
	}
	if f.lacks != nil {
		return nil, f.lacks
	}
	root, base := f.at(name)
	h, err := root.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, wrap("create", name, err)
	}
	return &file{h, name, f}, nil
}

// maxOpens is how often a file is opened anew that was replaced meanwhile: a store renames a whole file over another, as a
// tombstone over a sidecar, and whichever of the two is found is right.
const maxOpens = 100

// open opens a regular file as it is, for reading; with write also for
// writing, and made where absent.
func (f *files) open(name string, write bool) (h *file, err error) {
	if err := f.check("open", name); err != nil {
		return nil, err
	}
	if write && f.lacks != nil {
		return nil, f.lacks
	}
	for range maxOpens {
		if h, err = f.openOnce(name, write); !errors.Is(err, errChanged) {
			break
		}
	}
	return h, err
}

func (f *files) openOnce(name string, write bool) (*file, error) {
	root, base := f.at(name)
	before, err := root.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) && write {
		h, err := root.OpenFile(base, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return &file{h, name, f}, nil
		}
		if !errors.Is(err, fs.ErrExist) { // another process was first
			return nil, wrap("create", name, err)
		}
		before, err = root.Lstat(base)
		if err != nil {
			return nil, wrap("open", name, err)
		}
	} else if err != nil {
		return nil, wrap("open", name, err)
	}
	if !before.Mode().IsRegular() {
		return nil, wrap("open", name, errNotRegular)
	}
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	h, err := root.OpenFile(base, flag|nonblock, 0) // what is a pipe by now must not hang us
	if err != nil {
		return nil, wrap("open", name, err)
	}
	// os.Root follows links that stay inside: compare with what stood there.
	if after, err := h.Stat(); err != nil || !os.SameFile(before, after) {
		_ = h.Close()
		return nil, wrap("open", name, errChanged)
	}
	return &file{h, name, f}, nil
}

var (
	errNotRegular = errors.New("not a regular file")
	errTooLong    = errors.New("it is longer than it can be")
	errChanged    = errors.New("it was replaced while it was opened")
)

// read returns a whole file of at most max bytes, and its state.
func (f *files) read(name string, max int64) ([]byte, fs.FileInfo, error) {
	h, err := f.open(name, false)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = h.File.Close() }()
	info, err := h.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() > max {
		return nil, nil, wrap("read", name, errTooLong)
	}
	b, err := h.all(max, info.Size())
	return b, info, err
}

// stat says what stands under a name; it follows no link.
func (f *files) stat(name string) (fs.FileInfo, error) {
	if err := f.check("stat", name); err != nil {
		return nil, err
	}
	root, base := f.at(name)
	info, err := root.Lstat(base)
	return info, wrap("stat", name, err)
}

// rename moves within the store.
func (f *files) rename(from, to string) error {
	if err := f.check("rename", to); err != nil {
		return err
	}
	return wrap("rename", to, f.root.Rename(from, to))
}

// remove is content where there is nothing to remove.
func (f *files) remove(name string) error {
	if err := f.check("remove", name); err != nil {
		return err
	}
	root, base := f.at(name)
	err := root.Remove(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return wrap("remove", name, err)
}

// touch sets the time of last use.
func (f *files) touch(name string, at time.Time) error {
	if err := f.check("touch", name); err != nil {
		return err
	}
	root, base := f.at(name)
	return wrap("touch", name, root.Chtimes(base, at, at))
}

// names visits the names in a directory, in no order, a bounded number at a time.
func (f *files) names(dir string, visit func(name string)) error {
	if err := f.check("list", dir); err != nil {
		return err
	}
	d := f.dirs[dir]
	if d == nil {
		return f.lacks
	}
	h, err := d.Open(".")
	if err != nil {
		return wrap("list", dir, err)
	}
	defer func() { _ = h.Close() }()
	for {
		names, err := h.Readdirnames(1024)
		for _, n := range names {
			visit(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return wrap("list", dir, err)
		}
	}
}

// sync makes the names of a directory survive power loss.
func (f *files) sync(dir string) error {
	if err := f.check("sync", dir); err != nil {
		return err
	}
	h, err := f.dirs[dir].Open(".")
	if err != nil {
		return wrap("sync", dir, err)
	}
	defer func() { _ = h.Close() }()
	return wrap("sync", dir, syncDirectory(h))
}

// room says how many bytes the disk has free for us.
func (f *files) room() (int64, error) {
	if err := f.check("free", "."); err != nil {
		return 0, err
	}
	if f.free != nil {
		return f.free()
	}
	n, err := freeBytes(f.self, f.root.Name())
	return n, wrap("free", ".", err)
}

func (f *files) close() {
	for _, d := range f.dirs {
		_ = d.Close()
	}
	if f.self != nil {
		_ = f.self.Close()
	}
	if f.root != nil {
		_ = f.root.Close()
	}
}

// Write hides that of [os.File]: every write passes the fault.
func (f *file) Write(p []byte) (int, error) {
	if err := f.disk.check("write", f.name); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	n, err := f.File.Write(p)
	return n, wrap("write", f.name, err)
}

// replace overwrites the whole content in place.
func (f *file) replace(p []byte) error {
	if err := f.disk.check("write", f.name); err != nil {
		_, _ = f.WriteAt(p[:len(p)/2], 0)
		return err
	}
	if _, err := f.WriteAt(p, 0); err != nil {
		return wrap("write", f.name, err)
	}
	return wrap("write", f.name, f.Truncate(int64(len(p))))
}

// ReadAt hides that of [os.File].
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.disk.check("read", f.name); err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(p, off)
	if err == io.EOF {
		return n, err
	}
	return n, wrap("read", f.name, err)
}

// all reads a file of at most max bytes from its start; likely is its size, if
// nobody writes to it.
func (f *file) all(max, likely int64) ([]byte, error) {
	if err := f.disk.check("read", f.name); err != nil {
		return nil, err
	}
	b := make([]byte, 0, min(likely, max)+1) // one more: the end is seen at once
	for {
		n, err := f.File.ReadAt(b[len(b):cap(b)], int64(len(b)))
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > max:
			return nil, wrap("read", f.name, errTooLong)
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, wrap("read", f.name, err)
		}
		b = slices.Grow(b, 4*len(b)+1)
	}
}

// Stat hides that of [os.File].
func (f *file) Stat() (fs.FileInfo, error) {
	if err := f.disk.check("stat", f.name); err != nil {
		return nil, err
	}
	info, err := f.File.Stat()
	return info, wrap("stat", f.name, err)
}

// Sync hides that of [os.File].
func (f *file) Sync() error {
	if err := f.disk.check("sync", f.name); err != nil {
		return err
	}
	return wrap("sync", f.name, f.File.Sync())
}

// Close hides that of [os.File]; the descriptor is gone also where it fails.
func (f *file) Close() error {
	err := f.disk.check("close", f.name)
	if e := f.File.Close(); err == nil {
		err = wrap("close", f.name, e)
	}
	return err
}

// lock takes the lock of a file where it is free, shared or alone. It is
// freed when the file is released or closed, or the process dies.
func (f *file) lock(alone bool) (bool, error) {
	if err := f.disk.check("lock", f.name); err != nil {
		return false, err
	}
	ok, err := tryLock(f.File, alone)
	return ok, wrap("lock", f.name, err)
}

// release frees the lock of a file that was locked alone, and closes it. To close it frees the lock too, but not while a process is being
// started: until that runs its own program it has all files that are open here.
func (f *file) release() {
	unlock(f.File)
	_ = f.File.Close()
}

// linked says that the open file still stands under its name.
func (f *file) linked() (bool, error) {
	have, err := f.Stat()
	if err != nil {
		return false, err
	}
	stands, err := f.disk.stat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(have, stands), err
}

// hold takes the lock of a file that still stands under its name.
func (f *file) hold(alone bool) (bool, error) {
	ok, err := f.lock(alone)
	if ok && err == nil {
		ok, err = f.linked()
	}
	return ok && err == nil, err
}
