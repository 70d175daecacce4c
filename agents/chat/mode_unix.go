//go:build !windows

package chat

import (
	"errors"
	"io/fs"
)

// private returns an error if others may read a file with this mode.
func private(m fs.FileMode) error {
	if m.Perm()&0o077 != 0 {
		return errors.New("others may read it; run chmod 600 on it")
	}
	return nil
}
