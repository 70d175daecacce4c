package shell

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// readStreams passes both streams on until they end. It waits in a thread of its own: on a busy machine the Go
// scheduler may look at two ready pipes only after both were written, and their order would be lost.
func (j *job) readStreams(readers [2]*os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fds := []unix.PollFd{
		{Fd: int32(readers[0].Fd()), Events: unix.POLLIN}, // Fd makes reads block
		{Fd: int32(readers[1].Fd()), Events: unix.POLLIN},
	}
	for fds[0].Fd >= 0 || fds[1].Fd >= 0 {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for i := range fds {
			if fds[i].Revents == 0 {
				continue
			}
			data := idleChunks.Get().(*[chunkSize]byte)[:] // nothing else is put there
			n, err := unix.Read(int(fds[i].Fd), data)
			switch {
			case n > 0:
				j.chunks <- chunk{i == 1, data[:n]}
			case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN):
				fds[i].Fd = -1 // poll ignores it
			}
			fds[i].Revents = 0
		}
	}
}

// growPipe lets a pipe hold more, if the system permits it.
func growPipe(f *os.File, size int) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	}
}
