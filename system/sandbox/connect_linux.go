//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/child"
	"github.com/mcp-funnel/mcp-funnel/system/seccomp"
)

// This file connects processes of a command with the server, although they may open no unix socket:
//
//	process: socket(AF_UNIX, …, connectProtocol) ──► the filter suspends the call
//	server:  accept ◄── the filter's listener; one end of a socket pair becomes the result of the call
//
// There is no path that another process could connect to, and no process ID that could be mistaken: only what inherited
// the filter, the tree of this one command, can make the call.

// connectProtocol is the protocol of a socket that stands for a connection to the server. The kernel has none such.
const connectProtocol = 0x66756e6e

// Dial connects a process of a command with the server's [Spec.Connect].
func Dial() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, connectProtocol)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "server"), nil
}

// installFilter installs the filter of system calls and, with header.Connects, sends its listener to the server. If this
// system gives none, each [Dial] fails.
func (i *initProcess) installFilter(rules []seccomp.Rule) error {
	if i.Connects {
		socket := os.NewFile(uintptr(i.connect), "socket")
		defer socket.Close() //nolint:errcheck // the server sees its end
		own := seccomp.Rule{
			Call: unix.SYS_SOCKET, Errno: seccomp.Ask, If: []seccomp.Test{seccomp.Is(0, unix.AF_UNIX), seccomp.Is(2, connectProtocol)},
		}
		if fd, err := seccomp.Install(append([]seccomp.Rule{own}, rules...)); err == nil {
			listener := os.NewFile(uintptr(fd), "listener")
			defer listener.Close() //nolint:errcheck // the server has its own
			return child.Send(socket, []byte{0}, []*os.File{listener})
		}
	}
	_, err := seccomp.Install(rules)
	return err
}

// accept receives the listener of a command's filter, and has connect serve the connections of its processes until the
// last one has ended. Without a listener it returns at once.
func accept(from *os.File, connect func(*os.File)) {
	fds, err := child.Receive(int(from.Fd()), make([]byte, 1), 1)
	_ = from.Close()
	if err != nil || len(fds) != 1 {
		return
	}
	defer unix.Close(fds[0]) //nolint:errcheck // nothing was written to it
	for free := make(chan struct{}, MaxConnections); ; {
		free <- struct{}{} // before the call is answered: each open connection has a place
		conn, ended := acceptOne(fds[0])
		if ended {
			return
		}
		go func() {
			defer func() { <-free }()
			if conn != nil {
				defer conn.Close() //nolint:errcheck // the process sees its end
				connect(conn)
			}
		}()
	}
}

// acceptOne waits for a call of the filter's processes and answers it with one end of a connection, nil if that was
// impossible; ended reports that no call will come.
func acceptOne(listener int) (conn *os.File, ended bool) {
	ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if _, err := unix.Poll(ready, -1); err != nil {
		return nil, !errors.Is(err, unix.EINTR)
	} else if ready[0].Revents&unix.POLLIN == 0 {
		return nil, true
	}
	var call struct { // the kernel's seccomp_notif
		id   uint64
		rest [72]byte
	}
	control := func(request uintptr, argument unsafe.Pointer) (uintptr, unix.Errno) {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), request, uintptr(argument))
		return n, e
	}
	if _, e := control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)); e != 0 {
		return nil, e != unix.ENOENT && e != unix.EINTR // the process has ended or was interrupted; it calls again then
	}
	answer := struct { // the kernel's seccomp_notif_resp
		id    uint64
		value int64
		errno int32
		flags uint32
	}{id: call.id, errno: -int32(unix.EMFILE)}
	ours, theirs, err := child.SocketPair()
	if err == nil {
		defer theirs.Close() //nolint:errcheck // the process has its own
		file := struct {     // the kernel's seccomp_notif_addfd
			id                         uint64
			flags, source, fd, fdFlags uint32
		}{id: call.id, source: uint32(theirs.Fd()), fdFlags: unix.O_CLOEXEC}
		// The file and the answer are sent apart: of SECCOMP_ADDFD_FLAG_SEND that a signal interrupts, the process gets the
		// answer without the file, and would take its standard input for it.
		if fd, e := control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&file)); e == 0 {
			answer.value, answer.errno = int64(fd), 0
		}
	}
	if _, e := control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)); e != 0 || answer.errno != 0 {
		_ = ours.Close() // an error if it is nil
		return nil, false
	}
	return ours, false
}
