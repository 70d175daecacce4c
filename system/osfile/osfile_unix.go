//go:build unix

package osfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Nonblock is the open flag that makes opening a FIFO return at once instead of waiting for a writer.
const Nonblock = syscall.O_NONBLOCK

func openNoFollow(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|Nonblock|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) { // FreeBSD returns EMLINK
		return nil, refused(path, ErrLink)
	}
	if errors.Is(err, syscall.ENXIO) { // a socket
		return nil, refused(path, ErrNotRegular)
	}
	return f, err
}

// OwnerUID returns the user a file belongs to.
func OwnerUID(info fs.FileInfo) (uid int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}
