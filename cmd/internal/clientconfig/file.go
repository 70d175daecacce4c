package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 64 << 20

// backupSuffix is added to the name of a file for its backup.
const backupSuffix = ".before-mcp-funnel"

// File is a configuration file that was read; all work on it starts at its open directory.
type File struct {
	Path            string
	Content, Backup []byte // nil: missing

	dir  *os.Root
	name string
	mode fs.FileMode
}

// Open reads a configuration file and its backup. The file may be missing, and its directory too, if that of the
// directory exists: Write makes it. The caller must Close it.
func Open(path string) (*File, error) {
	f := &File{Path: path, name: filepath.Base(path), mode: 0o600}
	var err error
	if f.dir, err = os.OpenRoot(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		if info, wrong := os.Stat(filepath.Dir(filepath.Dir(path))); wrong == nil && info.IsDir() {
			return f, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if f.Content, f.mode, err = f.read(f.name); err == nil {
		f.Backup, _, err = f.read(f.name + backupSuffix)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the directory.
func (f *File) Close() {
	if f.dir != nil {
		_ = f.dir.Close()
	}
}

// read returns a file of the directory with its mode, or nil if it is missing. It checks the open file.
func (f *File) read(name string) ([]byte, fs.FileMode, error) {
	path := filepath.Join(filepath.Dir(f.Path), name)
	before, err := f.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err == nil && before.Mode()&fs.ModeSymlink != 0 {
		target, _ := filepath.EvalSymlinks(path) //nolint:errcheck // it is only shown
		return nil, 0, fmt.Errorf("%s is a link; --file names the file itself: %s", path, target)
	}
	if err != nil {
		return nil, 0, err
	}
	open, err := f.dir.OpenFile(name, os.O_RDONLY|osfile.Nonblock, 0)
	if err != nil {
		return nil, 0, err
	}
	defer open.Close() //nolint:errcheck // it was only read
	info, err := open.Stat()
	if err != nil {
		return nil, 0, err
	}
	uid, known := osfile.OwnerUID(info)
	switch {
	case !os.SameFile(before, info):
		err = errors.New("it was replaced while it was opened; try again")
	case !info.Mode().IsRegular():
		err = osfile.ErrNotRegular
	case known && uid != os.Geteuid():
		err = osfile.ErrForeign
	case info.Mode().Perm()&0o200 == 0:
		err = errors.New("it is read-only; make it writable if it should change")
	case info.Size() > maxFile:
		err = errors.New("it is over 64 MiB; a configuration is smaller")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(open, maxFile))
	return append([]byte{}, b...), info.Mode().Perm(), err
}

// Write carries out a plan: the backup first, then the file, each by a rename. It refuses if the file is no longer
// what the plan was made for. It returns the path of the backup, if there is one.
func (f *File) Write(p Plan) (backup string, err error) {
	if f.dir == nil {
		if err := os.Mkdir(filepath.Dir(f.Path), 0o755); err != nil {
			return "", err
		}
		if f.dir, err = os.OpenRoot(filepath.Dir(f.Path)); err != nil {
			return "", err
		}
	}
	if f.Content != nil && !p.keep && p.After != nil {
		if err := f.replace(f.name+backupSuffix, f.Content, nil); err != nil {
			return "", err
		}
	}
	unchanged := func() error {
		now, mode, err := f.read(f.name)
		if err == nil && ((now == nil) != (f.Content == nil) || mode != f.mode || !bytes.Equal(now, f.Content)) {
			err = fmt.Errorf("%s was changed by another program meanwhile: nothing is written; try again", f.Path)
		}
		return err
	}
	if p.After == nil {
		if err = unchanged(); err == nil {
			err = f.dir.Remove(f.name)
		}
		return "", err
	}
	if err := f.replace(f.name, p.After, unchanged); err != nil || f.Content == nil {
		return "", err
	}
	if p.drop {
		return "", f.dir.Remove(f.name + backupSuffix)
	}
	return f.Path + backupSuffix, nil
}

// replace writes a file of the directory by renaming another one, if check agrees just before.
func (f *File) replace(name string, b []byte, check func() error) error {
	temporary := fmt.Sprintf(".%s.%d.tmp", name, os.Getpid())
	out, err := f.dir.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	err = errors.Join(err, out.Chmod(f.mode), out.Sync(), out.Close())
	if err == nil && check != nil {
		err = check()
	}
	if err == nil {
		err = f.dir.Rename(temporary, name)
	}
	if err != nil {
		_ = f.dir.Remove(temporary)
	}
	return err
}
