//go:build unix

package stdio

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// surviveBrokenPipes makes a write to a closed stdout or stderr return an error instead of killing the process before
// clean-up. (Children would inherit an ignored SIGPIPE, but not a handler.)
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// parentGone returns a function that reports whether the current parent process has ended since.
func parentGone() func() bool {
	first := os.Getppid()
	return func() bool { return os.Getppid() != first }
}

// outGone reports whether all readers of a pipe, socket or terminal have closed it.
func outGone(out *os.File) bool {
	reported, ok := pollFile(out, 0)
	return !ok || reported&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}

// inputGone reports whether all writers of a pipe, socket or terminal have closed it, even if data is unread. For
// other inputs it returns false: only reading would show it.
func inputGone(in io.Reader) bool {
	reported, _ := pollFile(in, pollRDHup)
	return reported&(unix.POLLHUP|pollRDHup) != 0
}

// hasRoom reports whether out accepts more data now: then a write that does not return waits for this process, not
// for the reader. It returns false if out is not a file.
func hasRoom(out io.Writer) bool {
	reported, _ := pollFile(out, unix.POLLOUT)
	return reported == unix.POLLOUT
}

// pollFile returns the poll events of a file without waiting; ok is false if it is closed or not a file.
func pollFile(of any, events int16) (reported int16, ok bool) {
	file, is := of.(syscall.Conn)
	if !is {
		return 0, false
	}
	err := osfile.Control(file, func(fd int) error {
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 {
			reported = fds[0].Revents
		}
		return nil
	})
	return reported, err == nil
}

// Take returns duplicates of standard input and output that only the protocol uses. From then on standard input is at
// its end, and standard output is standard error, in this process and its children.
func Take() (in, out *os.File, err error) {
	// Close on exec: a child that inherited them would keep the client waiting after this process has ended.
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
	if err := dupFD(int(null.Fd()), 0); err != nil {
		return nil, nil, fmt.Errorf("take stdin: %w", err)
	}
	if dupFD(2, 1) == nil {
		return in, out, nil
	}
	// Standard error is closed: discard what is printed.
	if err := dupFD(int(null.Fd()), 1); err != nil {
		return nil, nil, fmt.Errorf("take stdout: %w", err)
	}
	return in, out, nil
}
