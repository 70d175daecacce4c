package tree

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// Created returns when a file was created; [errors.ErrUnsupported] if its file system does not record it.
func Created(f *os.File) (at time.Time, err error) {
	var s unix.Statx_t
	err = osfile.Control(f, func(fd int) error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &s) })
	switch {
	case err != nil:
		return at, err
	case s.Mask&unix.STATX_BTIME == 0:
		return at, errors.ErrUnsupported
	}
	return time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)), nil
}
