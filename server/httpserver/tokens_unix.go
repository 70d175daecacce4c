//go:build unix

package httpserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate returns an error if others can read a file that holds a secret, or another user but root owns it.
func checkPrivate(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("mode %04o gives others access to it; run chmod 600 on it", mode)
	}
	if at, ok := info.Sys().(*syscall.Stat_t); ok && int64(at.Uid) != int64(os.Geteuid()) && at.Uid != 0 {
		return errors.New("it belongs to another user; create one of your own")
	}
	return nil
}
