//go:build amd64 || arm64

package worker

import (
	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/seccomp"
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

// filterCalls installs the filter on all threads of this process, permanently. A worker may create a thread but no
// process. The flags of clone3 are not visible to a filter, so it is reported as not known.
func filterCalls() error {
	threads := seccomp.Test{Argument: 0, Mask: unix.CLONE_THREAD, Value: unix.CLONE_THREAD}
	_, err := seccomp.Install(append(seccomp.Deny(denied...),
		seccomp.Rule{Call: unix.SYS_CLONE3, Errno: unix.ENOSYS},
		seccomp.Rule{Call: unix.SYS_CLONE, If: []seccomp.Test{threads}, Errno: seccomp.Allow},
		seccomp.Rule{Call: unix.SYS_CLONE, Errno: unix.EPERM},
	))
	return err
}
