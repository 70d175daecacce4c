package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// growPipe lets a pipe hold more, if the system permits it.
func growPipe(f *os.File, size int) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	}
}
