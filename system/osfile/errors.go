package osfile

import (
	"errors"
	"io/fs"
)

// ErrNotRegular, ErrLink and ErrForeign are why OpenOwn refuses a file.
var (
	ErrNotRegular = errors.New("it is not a regular file")
	ErrLink       = errors.New("it is a link")
	ErrForeign    = errors.New("it belongs to another user")
)

var errReplaced = errors.New("it was replaced while it was opened")

func refused(path string, err error) error { return &fs.PathError{Op: "open", Path: path, Err: err} }
