// Package osfile opens files and directories that another program or user could have prepared, and locks files between
// processes.
//
// It is not a sandbox: a directory above the last name may be a link. Package tree confines names below a root.
package osfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRegular, ErrLink and ErrForeign are why OpenOwn refuses a file.
var (
	ErrNotRegular = errors.New("it is not a regular file")
	ErrLink       = errors.New("it is a link")
	ErrForeign    = errors.New("it belongs to another user")

	errReplaced = errors.New("it was replaced while it was opened")
)

func refused(path string, err error) error { return &fs.PathError{Op: "open", Path: path, Err: err} }

// OpenOwn opens a regular file of this user for reading. It follows no link in the last name and never waits for the
// writer of a FIFO. What is checked is the opened file, so nobody can replace it after the check.
func OpenOwn(path string) (*os.File, fs.FileInfo, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkOwn(info)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, refused(path, err)
	}
	return f, info, nil
}

func checkOwn(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	if uid, known := OwnerUID(info); known && uid != os.Geteuid() {
		return ErrForeign
	}
	return nil
}

// OpenDir opens a directory of this user, never through a link. The caller must close it.
func OpenDir(dir string) (*os.Root, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: move it away", dir)
	}
	if uid, known := OwnerUID(info); known && uid != os.Geteuid() {
		return nil, refused(dir, ErrForeign)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		_ = root.Close()
		return nil, refused(dir, errReplaced)
	}
	return root, nil
}
