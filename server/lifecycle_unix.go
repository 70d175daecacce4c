//go:build unix

package server

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// surviveBrokenPipes makes a write to a closed stdout or stderr an error like any other, not a death
// without clean-up. (Ignoring the signal would be inherited by children.)
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// parentGone says whether the process that was the parent now is so no longer.
func parentGone() func() bool {
	first := os.Getppid()
	return func() bool { return os.Getppid() != first }
}

// outGone says whether all readers of a pipe, socket or terminal have left.
func outGone(out *os.File) bool {
	said, ok := poll(out, 0)
	return !ok || said&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}

// inputGone says whether all writers of a pipe, socket or terminal have left, whatever of theirs is
// still unread. Of anything else it cannot be told without reading.
func inputGone(in io.Reader) bool {
	said, _ := poll(in, halfClosed)
	return said&(unix.POLLHUP|halfClosed) != 0
}

// hasRoom says whether out takes more at once: a write to it that does not end waits for this process, not for
// its reader. Of what is no file it cannot be told.
func hasRoom(out io.Writer) bool {
	said, _ := poll(out, unix.POLLOUT)
	return said == unix.POLLOUT
}

// poll gives what the kernel says of a file now; not ok where it is closed, or no file.
func poll(of any, events int16) (said int16, ok bool) {
	file, is := of.(syscall.Conn)
	if !is {
		return 0, false
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: events}}
		if n, err := unix.Poll(look, 0); err == nil && n > 0 {
			said = look[0].Revents
		}
	})
	return said, err == nil
}

// TakeStdio takes the process's input and output for the protocol, and for it alone: from here on
// whatever reads standard input finds its end, and whatever prints to standard output, in this
// process or a child of it, prints to standard error.
func TakeStdio() (in, out *os.File, err error) {
	// Neither may be inherited by a child: it would keep the client waiting after our end.
	take := func(fd int, name string) (*os.File, error) {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, fmt.Errorf("take %s: %w", name, err)
		}
		return os.NewFile(uintptr(own), name), nil
	}
	if in, err = take(0, "stdin"); err != nil {
		return nil, nil, err
	}
	if out, err = take(1, "stdout"); err != nil {
		return nil, nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("take stdin: %w", err)
	}
	defer func() { _ = null.Close() }()
	if err := dup(int(null.Fd()), 0); err != nil {
		return nil, nil, fmt.Errorf("take stdin: %w", err)
	}
	if dup(2, 1) == nil {
		return in, out, nil
	}
	// There is no standard error.
	if err := dup(int(null.Fd()), 1); err != nil {
		return nil, nil, fmt.Errorf("take stdout: %w", err)
	}
	return in, out, nil
}
