//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package storefs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func syncDirectory(d *os.File) error { return d.Sync() }

// writableByOthers reports whether users other than the owner may write.
func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// IsFull reports whether the disk, or the user's quota on it, is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsReadOnly reports whether writing is not permitted here.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
