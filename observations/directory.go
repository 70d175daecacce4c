package observations

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// enter opens the directory of a store and those in it, making what is absent,
// and refuses one that others could change under us. Where tmp/ or state/ is
// absent and cannot be made, lacks says why.
func (f *files) enter(dir string, fsync bool) error {
	made, err := f.makeAll(dir)
	if err != nil {
		return fmt.Errorf("%w: choose another with --store", wrap("make", "the directory", err))
	}
	if link, err := os.Lstat(dir); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		if uid, known := owner(link); known && uid != os.Geteuid() && uid != 0 {
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
	if err := ours(dir, info); err != nil {
		return err
	}
	if f.self, err = f.root.Open("."); err != nil {
		return wrap("open", ".", err)
	}
	f.dirs = map[string]*os.Root{}
	for _, name := range []string{observationsDir, tmpDir, stateDir} {
		err := f.enterSub(dir, name)
		if name != observationsDir && f.dirs[name] == nil && (isReadOnly(err) || isFull(err)) {
			f.lacks = err
		} else if err != nil {
			return err
		}
	}
	if fsync && f.lacks == nil {
		return f.syncMade(made)
	}
	return nil
}

// makeAll makes a directory and those above it, and names those it found absent
// with the one they were made in, which is the last.
func (f *files) makeAll(dir string) (made []string, err error) {
	for up := dir; ; up = filepath.Dir(up) {
		made = append(made, up)
		if _, err := os.Stat(up); err == nil || up == filepath.Dir(up) {
			break
		}
	}
	if err := f.check("mkdir", "."); err != nil {
		return nil, err
	}
	return made, os.MkdirAll(dir, 0o700)
}

// syncMade makes the directories survive power loss: what is acknowledged in
// them would go with them.
func (f *files) syncMade(made []string) error {
	for _, dir := range made {
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

// enterSub opens one of the directories in a store.
func (f *files) enterSub(dir, name string) error {
	path := filepath.Join(dir, name)
	info, err := f.stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: make it writable, or choose another with --store", err)
		}
		info, err = f.stat(name)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory but a %s: move it away, or choose another store with --store",
			clip(path, 200), kindOf(info.Mode()))
	}
	if err := ours(path, info); err != nil {
		return err
	}
	if err := f.check("open", name); err != nil {
		return err
	}
	sub, err := f.root.OpenRoot(name)
	if err != nil {
		return wrap("open", name, err)
	}
	f.dirs[name] = sub
	if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
		return wrap("open", name, errChanged)
	}
	return nil
}

func (f *files) mkdir(name string) error {
	if err := f.check("make", name); err != nil {
		return err
	}
	return wrap("make", name, f.root.Mkdir(name, 0o700))
}

// ours refuses a directory that belongs to another user or that others may
// write in: they could plant, swap or read what is kept.
func ours(dir string, info fs.FileInfo) error {
	if uid, known := owner(info); known && uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d who runs this: choose another with --store, or chown it",
			clip(dir, 200), uid, os.Geteuid())
	}
	if writable(info) {
		return fmt.Errorf("others may write in %s (mode %04o): run chmod go-w on it, or choose another with --store",
			clip(dir, 200), info.Mode().Perm())
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "link"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}
