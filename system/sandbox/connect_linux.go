//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/child"
	"github.com/mcp-funnel/mcp-funnel/system/seccomp"
)

// This file gives the processes of a command a connection to the server, although they may open no unix socket:
//
//	process: socket(AF_UNIX, …, connectProtocol) ──► the filter suspends the call
//	server:  accept ◄── the filter's listener; a socket pair: one end becomes the result of the call
//
// There is no path or address that another process could connect to, and the kernel names no process that could be
// mistaken for another: only what inherited the filter, the tree of this one command, can make the call.

// connectProtocol is the protocol of a socket that stands for a connection to the server; the kernel knows none such.
const connectProtocol = 0x66756e6e

// Dial connects a process of a command with the server's [Spec.Connect].
func Dial() (*os.File, error) {
	for {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, connectProtocol)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		default:
			return os.NewFile(uintptr(fd), "server"), nil
		}
	}
}

// installFilter installs the filter of system calls. With header.Connects, it sends the filter's listener to the server;
// without one, where this system has none, each [Dial] fails.
func (i *initProcess) installFilter(rules []seccomp.Rule) error {
	if !i.Connects {
		return seccomp.Install(rules)
	}
	socket := os.NewFile(uintptr(i.connect), "listener")
	defer socket.Close() //nolint:errcheck // the server sees its end
	asking := append([]seccomp.Rule{{
		Call: unix.SYS_SOCKET, Ask: true, If: []seccomp.Test{seccomp.Is(0, unix.AF_UNIX), seccomp.Is(2, connectProtocol)},
	}}, rules...)
	fd, err := seccomp.InstallAsking(asking)
	if err != nil {
		return seccomp.Install(rules)
	}
	listener := os.NewFile(uintptr(fd), "filter")
	defer listener.Close() //nolint:errcheck // the server has its own
	return child.Send(socket, []byte{0}, []*os.File{listener})
}

// connector passes the listener of a command's filter from init to the server.
type connector struct{ ours, theirs *os.File }

func newConnector() (c connector, err error) {
	c.theirs, c.ours, err = child.SocketPair()
	return c, err
}

func (c connector) close() {
	_, _ = c.ours.Close(), c.theirs.Close()
}

// start has connect serve the connections of a command that runs, until its last process has ended. It does nothing if
// init has sent no listener.
func (c connector) start(connect func(*os.File)) {
	_ = c.theirs.Close() // init has its own
	fds, err := child.Receive(int(c.ours.Fd()), make([]byte, 1), 1)
	if err == nil && len(fds) == 1 {
		go accept(fds[0], connect)
	}
}

// notification is the kernel's struct seccomp_notif.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	data  [64]byte
}

// result is the kernel's struct seccomp_notif_addfd: a descriptor that is the result of a call.
type result struct {
	id                         uint64
	flags, source, fd, fdFlags uint32
}

// accept serves the calls that the listener has, until no process has the filter any more.
func accept(listener int, connect func(*os.File)) {
	defer unix.Close(listener) //nolint:errcheck // nothing was written to it
	free := make(chan struct{}, MaxConnections)
	for {
		free <- struct{}{} // before the call is answered: each open connection has a place
		conn, err := acceptOne(listener)
		switch {
		case err != nil:
			return
		case conn == nil:
			<-free
		default:
			go func() {
				defer func() { <-free }()
				defer conn.Close() //nolint:errcheck // the process sees its end
				connect(conn)
			}()
		}
	}
}

// acceptOne waits for a call and answers it with one end of a connection; nil if the process has given up. The error
// says that no further call will come.
func acceptOne(listener int) (*os.File, error) {
	ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if _, err := unix.Poll(ready, -1); errors.Is(err, unix.EINTR) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if ready[0].Revents&unix.POLLIN == 0 {
		return nil, errEnded
	}
	var n notification
	if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
		return nil, gone(err)
	}
	ours, theirs, err := child.SocketPair()
	if err != nil {
		return nil, deny(listener, n.id)
	}
	defer theirs.Close() //nolint:errcheck // the process has its own
	r := result{
		id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, source: uint32(theirs.Fd()), fdFlags: unix.O_CLOEXEC,
	}
	if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&r)); err != nil {
		_ = ours.Close()
		if gone(err) == nil {
			return nil, nil
		}
		return nil, deny(listener, n.id) // it has no room for another file
	}
	return ours, nil
}

// deny fails a call as if no file could be opened.
func deny(listener int, id uint64) error {
	response := struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}{id: id, errno: -int32(unix.EMFILE)}
	return gone(control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response)))
}

// gone returns nil if the error says that the process has ended or was interrupted meanwhile; it calls again then.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

func control(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}
