//go:build linux || darwin

package storefs

import (
	"os"

	"golang.org/x/sys/unix"
)

// freeBytes returns how many bytes an ordinary user may still write to the disk of dir.
func freeBytes(dir *os.File, _ string) (int64, error) {
	conn, err := dir.SyscallConn()
	if err != nil {
		return 0, err
	}
	var st unix.Statfs_t
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			failed = unix.Fstatfs(int(fd), &st)
			if failed != unix.EINTR {
				return
			}
		}
	})
	if err == nil {
		err = failed
	}
	return int64(st.Bavail) * int64(st.Bsize), err //nolint:unconvert // darwin's Bsize is a uint32
}
