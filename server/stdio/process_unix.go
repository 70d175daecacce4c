//go:build unix

package stdio

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// surviveBrokenPipes makes a write to a closed stdout or stderr return an error instead of killing the process before
// clean-up. (Children would inherit an ignored SIGPIPE, but not a handler.)
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// awaitGone waits until the parent process has ended or Out has no reader any more, and returns which of them. It
// returns nil if stopped is closed. It waits for descriptors; the parent is checked every [pollInterval] where it has
// none. A death signal (PR_SET_PDEATHSIG) is no substitute: it is sent when the parent's thread ends, and not at all if
// the parent has ended before.
func awaitGone(l Lifetime, stopped <-chan struct{}) error {
	first := os.Getppid()
	wake, end, err := os.Pipe()
	if err != nil {
		return nil //nolint:nilerr // without descriptors nothing can be watched; the end of the input still ends it
	}
	defer wake.Close() //nolint:errcheck // nothing was written to it
	go func() {
		<-stopped
		_ = end.Close()
	}()
	poll := []unix.PollFd{{Fd: int32(wake.Fd()), Events: unix.POLLIN}, {Fd: -1}, {Fd: -1, Events: unix.POLLIN}}
	if l.Out != nil {
		// Its own descriptor: closing a file waits for those that use it.
		if err := osfile.Control(l.Out, func(fd int) error {
			own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
			poll[1].Fd = int32(own)
			return err
		}); err != nil {
			return ErrOutGone
		}
		defer unix.Close(int(poll[1].Fd)) //nolint:errcheck // nothing was written to it
	}
	wait := -1
	if l.Parent {
		if fd, err := processFD(first); err == nil {
			poll[2].Fd = int32(fd)
			defer unix.Close(fd) //nolint:errcheck // nothing was written to it
		} else {
			wait = int(pollInterval / time.Millisecond)
		}
	}
	for {
		_, err := unix.Poll(poll, wait)
		switch {
		case err == nil && poll[0].Revents != 0:
			return nil
		case l.Parent && (err == nil && poll[2].Revents != 0 || os.Getppid() != first):
			return ErrParentGone
		case err == nil && poll[1].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
			return ErrOutGone
		}
	}
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
