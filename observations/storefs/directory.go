package storefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// OpenDirs opens the directory of a store and its subdirectories and creates missing ones. It refuses a directory that
// other users could change. If tmp/ or state/ is missing and cannot be created, f.Unwritable says why.
func (f *FS) OpenDirs(dir string, fsync bool) error {
	created, err := f.makeDirs(dir)
	if err != nil {
		return fmt.Errorf("%w: choose another with --store", wrap("make", "the directory", err))
	}
	if link, err := os.Lstat(dir); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		if uid, known := osfile.OwnerUID(link); known && uid != os.Geteuid() && uid != 0 {
			return fmt.Errorf("it is a link that user %d made: choose another with --store", uid)
		}
	}
	if err := f.check("open", "."); err != nil {
		return err
	}
	if f.root, err = os.OpenRoot(dir); err != nil {
		return fmt.Errorf("%w: choose another with --store", wrap("open", "the directory", err))
	}
	info, err := f.root.Stat(".")
	if err != nil {
		return wrap("stat", ".", err)
	}
	if err := checkPrivate(dir, info); err != nil {
		return err
	}
	if f.self, err = f.root.Open("."); err != nil {
		return wrap("open", ".", err)
	}
	f.Dirs = map[string]*os.Root{}
	if err := f.mark(); IsReadOnly(err) || IsFull(err) {
		f.Unwritable = err
	} else if err != nil {
		return err
	}
	for _, name := range []string{ObservationsDir, TmpDir, StateDir} {
		err := f.openSubdir(dir, name)
		if name != ObservationsDir && f.Dirs[name] == nil && (IsReadOnly(err) || IsFull(err)) {
			f.Unwritable = err
		} else if err != nil {
			return err
		}
	}
	if fsync && f.Unwritable == nil {
		return f.syncParents(created)
	}
	return nil
}

// mark creates the marker file of a store if it is missing, before anything else in it: package tree hides every
// directory with such a file from tools.
func (f *FS) mark() error {
	if _, err := f.Stat(tree.StoreMarker); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h, err := f.Create(tree.StoreMarker)
	if errors.Is(err, fs.ErrExist) { // another process was first
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: make it writable, or choose another with --store", err)
	}
	return h.File.Close()
}

// makeDirs creates a directory and its missing parents. It returns the created ones, and last the directory that
// contains them.
func (f *FS) makeDirs(dir string) (created []string, err error) {
	for up := dir; ; up = filepath.Dir(up) {
		created = append(created, up)
		if _, err := os.Stat(up); err == nil || up == filepath.Dir(up) {
			break
		}
	}
	if err := f.check("mkdir", "."); err != nil {
		return nil, err
	}
	return created, os.MkdirAll(dir, 0o700)
}

// syncParents makes new directories survive a power loss, which could otherwise remove them with all files in them.
func (f *FS) syncParents(created []string) error {
	for _, dir := range created {
		if err := f.check("sync", "."); err != nil {
			return err
		}
		d, err := os.Open(dir)
		if err == nil {
			err = syncDirectory(d)
			_ = d.Close()
		}
		if err != nil {
			return wrap("sync", ".", err)
		}
	}
	return nil
}

// openSubdir opens one subdirectory of a store, and creates it if missing.
func (f *FS) openSubdir(dir, name string) error {
	path := filepath.Join(dir, name)
	info, err := f.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = f.do("make", name, func() error { return f.root.Mkdir(name, 0o700) })
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: make it writable, or choose another with --store", err)
		}
		info, err = f.Stat(name)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory but a %s: move it away, or choose another store with --store",
			content.ClipEnd(path, 200), fileType(info.Mode()))
	}
	if err := checkPrivate(path, info); err != nil {
		return err
	}
	if err := f.check("open", name); err != nil {
		return err
	}
	sub, err := f.root.OpenRoot(name)
	if err != nil {
		return wrap("open", name, err)
	}
	f.Dirs[name] = sub
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
		return wrap("open", name, errChanged)
	}
	return nil
}

// checkPrivate refuses a directory that belongs to another user or that others may write to, because they could plant,
// replace or read observations.
func checkPrivate(dir string, info fs.FileInfo) error {
	if uid, known := osfile.OwnerUID(info); known && uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d who runs this:"+
			" choose another with --store, or chown it",
			content.ClipEnd(dir, 200), uid, os.Geteuid())
	}
	if writableByOthers(info) {
		return fmt.Errorf("others may write in %s (mode %04o): run chmod go-w on it, or choose another with --store",
			content.ClipEnd(dir, 200), info.Mode().Perm())
	}
	return nil
}

func fileType(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "link"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}
