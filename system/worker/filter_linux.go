//go:build amd64 || arm64

package worker

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied lists the system calls that fail with EPERM in a worker: opening files by name, the network, other processes,
// and parts of the kernel with a history of vulnerabilities. A worker may read and write its open files. This is a deny
// list, because any version of the Go runtime may start to use another call.
var denied = append([]uintptr{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_TRUNCATE,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_CHDIR,
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_KILL, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_GETFD, unix.SYS_PTRACE,
	unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN, unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT, unix.SYS_ACCT, unix.SYS_QUOTACTL,
}, deniedHere...)

// Offsets in the kernel's struct seccomp_data.
const (
	atNumber   = 0
	atArch     = 4
	atArgument = 16 // the lower half of the first argument, on little-endian machines
)

// filterCalls installs the filter on all threads of this process, permanently.
func filterCalls() error {
	program := filter(denied)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, e := unix.Syscall(
		unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)),
	)
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}

// filter returns the program that the kernel runs on each call. A jump goes forward, by at most 255 instructions.
func filter(denied []uintptr) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		set   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		end   = unix.BPF_RET | unix.BPF_K
		// Some kernels also accept calls of another ABI, whose numbers start here.
		foreign = 0x40000000
	)
	p := []unix.SockFilter{
		{Code: load, K: atArch},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: end, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: atNumber},
	}
	refuse := len(denied) + 5 // index, within rest, of the refusing instruction
	deny := func(at int) uint8 { return uint8(refuse - at - 1) }
	rest := []unix.SockFilter{{Code: least, K: foreign, Jt: deny(0)}}
	for _, call := range denied {
		rest = append(rest, unix.SockFilter{Code: equal, K: uint32(call), Jt: deny(len(rest))})
	}
	rest = append(rest,
		// A worker may create a thread but no process. The flags of clone3 are not visible to a filter.
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE3, Jt: 4}, // to "not known"
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 4},  // to "allowed"
		unix.SockFilter{Code: load, K: atArgument},
		unix.SockFilter{Code: set, K: unix.CLONE_THREAD, Jt: 2},
		unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}, // ENOSYS: not known
		unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW},
	)
	return append(p, rest...)
}
