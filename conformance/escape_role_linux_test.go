package conformance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// escapes are attempts that need system calls. Each returns nil if it reached what a command must not reach; the
// argument is a process or an address outside.
var escapes = map[string]func(arg string) error{
	"signal":   func(arg string) error { return unix.Kill(number(arg), 0) },
	"priority": func(arg string) error { return unix.Setpriority(unix.PRIO_PROCESS, number(arg), 1) },
	"ptrace": func(arg string) error {
		if err := unix.PtraceSeize(number(arg)); err != nil {
			return err
		}
		return unix.PtraceDetach(number(arg))
	},
	"memory of another process": func(arg string) error {
		b := make([]byte, 8)
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		_, err := unix.ProcessVMReadv(number(arg), local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return err
	},
	"pidfd":       func(arg string) error { return closeAfter(unix.PidfdOpen(number(arg), 0)) },
	"tcp":         func(arg string) error { return dial("tcp", arg) },
	"unix socket": func(arg string) error { return dial("unix", arg) }, // "@x" is an abstract one
	"unix socket of a pair": func(arg string) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Connect(pair[0], &unix.SockaddrUnix{Name: arg})
	},
	"packets": func(string) error { return closeAfter(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) },
	"vsock":   func(string) error { return closeAfter(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) },
	"netlink": func(string) error {
		return closeAfter(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT))
	},
	"algorithms": func(string) error { return closeAfter(unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)) },
	"unix":       func(string) error { return closeAfter(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)) },
	"keyring": func(string) error {
		_, err := unix.AddKey("user", "mcp-funnel-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	},
	"perf": func(string) error {
		return closeAfter(unix.PerfEventOpen(&unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
			Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		}, 0, -1, -1, 0))
	},
	"userfaultfd": func(string) error { return callOnly(unix.SYS_USERFAULTFD, 1) },
	"io_uring": func(string) error {
		params := make([]byte, 120)
		return callOnly(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])))
	},
	"bpf": func(string) error {
		attr := make([]byte, 72)
		attr[0], attr[4], attr[8], attr[12] = 2, 4, 4, 1 // an array map of one element
		return callOnly(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)))
	},
	"types into a terminal": func(string) error {
		letter := byte('x')
		_, _, e := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&letter)))
		if errors.Is(e, unix.ENOTTY) {
			return nil // the kernel was asked
		}
		return e
	},
	"namespace": func(string) error { return unix.Unshare(unix.CLONE_NEWUTS) },
	"handle": func(arg string) error {
		_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, arg, 0)
		return err
	},
	"descriptors": func(string) error {
		for fd := 3; fd < 64; fd++ {
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != 0 {
				if name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); name != "" &&
					name[0] != 'a' { // anon_inode
					fmt.Println(fd, name)
					return nil
				}
			}
		}
		return errors.New("there are none")
	},
	"memory": func(string) error {
		b, err := unix.Mmap(-1, 0, 1<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		return err
	},
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err
}

func number(arg string) int {
	n, _ := strconv.Atoi(arg)
	return n
}

func closeAfter(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func callOnly(call uintptr, args ...uintptr) error {
	args = append(args, 0, 0, 0)
	r, _, e := unix.Syscall(call, args[0], args[1], args[2])
	if e != 0 {
		return e
	}
	_ = unix.Close(int(r))
	return nil
}

func init() { roles["escape"] = escapeRole }

// escapeRole makes the attempt that its arguments name.
func escapeRole() error {
	attempt, ok := escapes[os.Args[1]]
	if !ok {
		return fmt.Errorf("there is no attempt %q", os.Args[1])
	}
	arg := ""
	if len(os.Args) > 2 {
		arg = os.Args[2]
	}
	return attempt(arg)
}
