package tree

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Created returns when a file was created; [errors.ErrUnsupported] if its file system does not record it.
func Created(f *os.File) (at time.Time, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return at, err
	}
	var s unix.Statx_t
	failed := conn.Control(func(fd uintptr) {
		err = unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &s)
	})
	switch {
	case errors.Join(failed, err) != nil:
		return at, errors.Join(failed, err)
	case s.Mask&unix.STATX_BTIME == 0:
		return at, errors.ErrUnsupported
	}
	return time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)), nil
}
