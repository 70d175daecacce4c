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

// Control makes a system call on the descriptor of an open file, and repeats it if a signal interrupts it. The
// descriptor stays open meanwhile.
func Control(f syscall.Conn, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) {
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = call(int(fd))
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

// OwnerUID returns the user a file belongs to.
func OwnerUID(info fs.FileInfo) (uid int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}
