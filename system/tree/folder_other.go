//go:build !unix || portable

// The build tag portable tests this implementation on Linux: go test -tags portable.

package tree

import (
	"errors"
	"io/fs"
	"os"
)

// ident identifies a file independently of its name.
type ident struct{ at fs.FileInfo }

func (a ident) same(b ident) bool { return a.at != nil && b.at != nil && os.SameFile(a.at, b.at) }

func identOf(at fs.FileInfo) ident {
	if in, ok := at.(info); ok {
		return in.id
	}
	return ident{at}
}

// folder is an open directory below the root. Files in it are opened by one name. Links are not followed: the opened
// file is compared with the one under the name.
type folder struct{ root *os.Root }

// top opens the root itself.
func (r *Root) top() (folder, error) {
	sub, err := r.os.OpenRoot(".")
	return folder{sub}, err
}

// folderAt opens a directory, following links inside the root.
func (r *Root) folderAt(rel string) (folder, error) {
	var found folder
	err := r.resolveStepwise(rel, func(dir folder, name string) (err error) {
		if name == "." {
			found, err = r.top()
		} else {
			found, err = dir.openDir(name)
		}
		return err
	})
	return found, err
}

func (d folder) close() {
	if d.root != nil {
		d.root.Close()
	}
}

var (
	errChanged = errors.New("changed while it was opened")
	errNotDir  = errors.New("not a directory")
)

func (d folder) openDir(name string) (folder, error) {
	at, err := d.root.Lstat(name)
	if err != nil {
		return folder{}, err
	}
	if !at.IsDir() {
		return folder{}, errNotDir
	}
	sub, err := d.root.OpenRoot(name)
	if err != nil {
		return folder{}, err
	}
	got, err := sub.Stat(".")
	if err == nil && !os.SameFile(at, got) {
		err = errChanged
	}
	if err != nil {
		sub.Close()
		return folder{}, err
	}
	return folder{sub}, nil
}

func (d folder) openFile(name string, flags int) (*os.File, error) {
	at, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if at.Mode()&fs.ModeSymlink != 0 {
		return nil, errIsLink
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|flags, 0)
	if err != nil {
		return nil, err
	}
	got, err := f.Stat()
	if err == nil && !os.SameFile(at, got) {
		err = errChanged
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (d folder) readlink(name string) (string, error) { return d.root.Readlink(name) }

func (d folder) id() (ident, error) {
	at, err := d.root.Stat(".")
	return ident{at}, err
}

// lstat describes a name in d, and does not follow a link.
func (d folder) lstat(name string) (info, error) {
	at, err := d.root.Lstat(name)
	return info{at, ident{at}}, err
}

// info is the [fs.FileInfo] of a name in a folder.
type info struct {
	fs.FileInfo
	id ident
}
