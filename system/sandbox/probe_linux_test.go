//go:build amd64 || arm64

package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeKey is the environment variable that makes the test binary try one of [probes].
const probeKey = "SANDBOX_PROBE"

func runProbe(name string, args []string) int {
	try, ok := probes[name]
	if !ok {
		fmt.Println("there is no probe", name)
		return 2
	}
	if err := try(append(args, "")[0]); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// probes return nil if they reached what a command must not reach. The argument is a process or an address outside.
var probes = map[string]func(arg string) error{
	"signal": func(arg string) error { return unix.Kill(number(arg), 0) },
	"nice":   func(arg string) error { return unix.Setpriority(unix.PRIO_PROCESS, number(arg), 1) },
	"io priority": func(arg string) error {
		const process, idle = 1, 3 << 13
		return call(unix.SYS_IOPRIO_SET, process, uintptr(number(arg)), idle)
	},
	"limit": func(arg string) error {
		return unix.Prlimit(number(arg), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	},
	"affinity": func(arg string) error {
		var set unix.CPUSet
		set.Set(0)
		return unix.SchedSetaffinity(number(arg), &set)
	},
	"ptrace": func(arg string) error { return unix.PtraceSeize(number(arg)) },
	"stream": func(arg string) error { return dial("unix", arg) },
	"tcp":    func(arg string) error { return dial("tcp", arg) },
	"udp":    func(arg string) error { return dial("udp", arg) },
	"datagram pair": func(arg string) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Connect(pair[0], &unix.SockaddrUnix{Name: arg})
	},
	"packet": func(string) error { return opened(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) },
	"raw":    func(string) error { return opened(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)) },
	"vsock":  func(string) error { return opened(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) },
	"alg":    func(string) error { return opened(unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)) },
	"audit": func(string) error {
		return opened(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT))
	},
	"keyring": func(string) error {
		_, err := unix.AddKey("user", "sandbox-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	},
	"userfaultfd": func(string) error { return call(unix.SYS_USERFAULTFD, 1, 0, 0) },
	"io_uring": func(string) error {
		var params [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	},
	"bpf": func(string) error {
		attr := [72]byte{0: 2, 4: 4, 8: 4, 12: 1} // an array map of one element
		return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)))
	},
	"perf": func(string) error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
		return opened(unix.PerfEventOpen(&attr, 0, -1, -1, 0))
	},
	"types into a terminal": func(string) error {
		letter := byte('x')
		err := call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&letter)))
		if errors.Is(err, unix.ENOTTY) {
			return nil // the kernel was asked
		}
		return err
	},
	"unshare": func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"handle": func(arg string) error {
		_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, arg, 0)
		return err
	},
	"private memory": func(string) error { return fill(unix.MAP_PRIVATE) },
	"shared memory":  func(string) error { return fill(unix.MAP_SHARED) },
	"memory file": func(string) error {
		fd, err := unix.MemfdCreate("x", 0)
		for n := 0; err == nil && n < probeMemory>>20; n++ {
			_, err = unix.Write(fd, make([]byte, 1<<20))
		}
		return err
	},
	"memory by key": func(string) error {
		id, err := unix.SysvShmGet(0, probeMemory, 0o600)
		if err != nil {
			return err
		}
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return err
	},
}

// probeMemory is how much the probes of memory allocate, in bytes.
const probeMemory = 300 << 20

func fill(flag int) error {
	b, err := unix.Mmap(-1, 0, probeMemory, unix.PROT_READ|unix.PROT_WRITE, flag|unix.MAP_ANONYMOUS)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	if err == nil {
		time.Sleep(time.Second) // limits of the tree are compared from time to time
	}
	return err
}

func number(arg string) int {
	n, _ := strconv.Atoi(arg)
	return n
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // a probe's
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, err = c.Read(make([]byte, 1))
	return err
}

func opened(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func call(number, a, b, c uintptr) error {
	if _, _, e := unix.Syscall(number, a, b, c); e != 0 {
		return e
	}
	return nil
}
