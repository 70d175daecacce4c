//go:build unix

// Package child has what package sandbox and package worker share: a socket between this process and a child of the
// same binary, which passes open files, and the rights that such a child drops.
package child

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SocketPair returns a stream socket: only a socket can pass open files to a running process. Reads and writes of the
// parent's end can have deadlines; the child's end blocks.
func SocketPair() (parent, child *os.File, err error) {
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
	return os.NewFile(uintptr(pair[0]), "child"), os.NewFile(uintptr(pair[1]), "parent"), nil
}

// Send sends bytes and open files in one message.
func Send(to *os.File, b []byte, files []*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	conn, err := to.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var failed error
	err = conn.Write(func(fd uintptr) bool {
		n, failed = unix.SendmsgN(int(fd), b, rights, nil, 0)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	if err = errors.Join(err, failed); err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// Receive fills b with the bytes of a message from a blocking socket, and returns the descriptors of its files, most at
// a time. The error is io.EOF if the socket was closed before a message.
func Receive(socket int, b []byte, most int) (fds []int, err error) {
	rights := make([]byte, unix.CmsgSpace(4*most))
	n, size := 0, 0
	for {
		n, size, _, _, err = unix.Recvmsg(socket, b, rights, unix.MSG_WAITALL)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	case n < len(b):
		return nil, io.ErrUnexpectedEOF
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil {
		return nil, err
	}
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		for _, fd := range more {
			unix.CloseOnExec(fd)
		}
		fds = append(fds, more...)
	}
	return fds, nil
}
