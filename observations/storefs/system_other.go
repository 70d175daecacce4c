//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package storefs

import (
	"errors"
	"io/fs"
	"os"
)

const nonblock = 0

func tryLock(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }

func unlock(*os.File) {}

func syncDirectory(d *os.File) error { return d.Sync() }

func ownerUID(fs.FileInfo) (uid int, known bool) { return 0, false }

func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

func IsFull(error) bool { return false }

func IsReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }
