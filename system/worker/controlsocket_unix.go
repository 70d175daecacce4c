//go:build unix

package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// controlSocket creates a worker's standard input: a socket, because only a socket can pass open files to a running
// process.
func controlSocket() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // no other child process may inherit the sockets
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		_, _ = unix.Close(pair[0]), unix.Close(pair[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "worker"), os.NewFile(uintptr(pair[1]), "parent"), nil
}

// sendJob sends a job's header and its files in one message.
func sendJob(to *os.File, head []byte, files []*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	raw, err := to.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		n, failed = unix.SendmsgN(int(fd), head, rights, nil, 0)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	if err = errors.Join(err, failed); err == nil && n < len(head) {
		err = io.ErrShortWrite
	}
	return err
}

// receiveJob receives a job in the worker. The error is io.EOF if the parent ended or has no job.
func receiveJob() (head []byte, files []*os.File, err error) {
	head = make([]byte, headSize)
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, m := 0, 0
	for {
		n, m, _, _, err = unix.Recvmsg(0, head, rights, unix.MSG_WAITALL)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("no job came: %w", err)
	case n == 0:
		return nil, nil, io.EOF
	case n < headSize:
		return nil, nil, io.ErrUnexpectedEOF
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return nil, nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "file "+strconv.Itoa(len(files))))
		}
	}
	return head, files, nil
}

// readAvailable reads the bytes that are in a pipe now, even if the pipe's deadline has passed. It returns 0 if there
// are none.
func readAvailable(r *os.File, buf []byte) (n int) {
	_ = osfile.Control(r, func(fd int) (err error) { // the parent's ends of the pipes are non-blocking
		n, err = unix.Read(fd, buf)
		return err
	})
	return max(n, 0)
}
