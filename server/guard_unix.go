//go:build unix

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// nonblock keeps the opening of a file from waiting.
const nonblock = syscall.O_NONBLOCK

// private says what is wrong with a file that holds a secret.
func private(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("mode %04o lets others read it; run: chmod 600 on it", mode)
	}
	if at, ok := info.Sys().(*syscall.Stat_t); ok && int64(at.Uid) != int64(os.Geteuid()) && at.Uid != 0 {
		return errors.New("it belongs to another user; make one of your own")
	}
	return nil
}
