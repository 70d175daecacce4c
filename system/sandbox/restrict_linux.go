//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	lsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/child"
	"github.com/mcp-funnel/mcp-funnel/system/seccomp"
)

// restrict drops the rights of this process and of all that it starts.
func (i *initProcess) restrict() error {
	must := func(layer string, err error) error {
		if err == nil || i.Mode != Required {
			return nil
		}
		return &Unavailable{layer, err}
	}
	if err := child.AllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return &Unavailable{layerRights, err}
	}
	if err := must(layerLandlock, i.landlock()); err != nil {
		return err
	}
	if i.Namespaces || os.Geteuid() == 0 {
		if err := must(layerRights, dropCapabilities()); err != nil {
			return err
		}
	}
	// The command must not read init's memory: it has the same user.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return &Unavailable{layerRights, err}
	}
	var more []seccomp.Rule
	if !i.sharedByKey {
		more = seccomp.Deny(unix.SYS_SHMGET)
	}
	if !i.Namespaces {
		scopeThread()
		more = append(more, rulesOutsideNamespaces(i.Net)...)
	}
	return must(layerCalls, i.installFilter(append(more, rules...)))
}

// scopeThread makes the kernel deny signals to processes outside, if it can, to all that this thread starts. Other
// threads of init stay free: Landlock domains differ from thread to thread, and one could not kill what another
// started.
func scopeThread() {
	version, err := lsys.LandlockGetABIVersion()
	if err != nil || version < landlockScopes {
		return
	}
	attr := lsys.RulesetAttr{Scoped: lsys.ScopeSignal | lsys.ScopeAbstractUnixSocket}
	fd, err := lsys.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return
	}
	_, _, _ = unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0)
	_ = unix.Close(fd)
}

const landlockScopes = 6 // the version of Landlock that knows scopes

// rulesOutsideNamespaces are what namespaces would deny: the network of the machine, the priorities and limits of other
// processes, and queues by key or name. They come before [rules].
func rulesOutsideNamespaces(net bool) []seccomp.Rule {
	const ioprioProcess = 1
	var list []seccomp.Rule
	allow := func(call uintptr, tests ...seccomp.Test) {
		list = append(list, seccomp.Rule{Call: call, If: tests, Errno: seccomp.Allow})
		list = append(list, seccomp.Rule{Call: call, Errno: unix.EPERM})
	}
	allow(unix.SYS_SETPRIORITY, seccomp.Is(0, unix.PRIO_PROCESS), seccomp.Is(1, 0))
	allow(unix.SYS_IOPRIO_SET, seccomp.Is(0, ioprioProcess), seccomp.Is(1, 0))
	for _, call := range []uintptr{
		unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
		unix.SYS_PRLIMIT64,
	} {
		allow(call, seccomp.Is(0, 0))
	}
	list = append(list, seccomp.Deny(
		unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_PIDFD_SEND_SIGNAL,
	)...)
	if !net {
		list = append(list, seccomp.Deny(unix.SYS_SOCKET)...)
	}
	return list
}

func (i *initProcess) landlock() error {
	if _, err := lsys.LandlockGetABIVersion(); err != nil {
		return fmt.Errorf("this kernel has no Landlock, or it is switched off: %w", err)
	}
	var rules []landlock.Rule
	if i.Namespaces { // all that is mounted is granted
		rules = append(rules, landlock.RODirs("/"))
	} else {
		rules = append(rules, landlock.RODirs(append([]string{"/proc"}, SystemDirs...)...).IgnoreIfMissing())
	}
	dev := []string{"/dev/full", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}
	rules = append(rules, landlock.RWFiles(dev...).IgnoreIfMissing(), landlock.RWDirs("/dev/shm").IgnoreIfMissing())
	for n, m := range i.Mounts {
		if i.Namespaces && i.Sources[n].NotThere || m.Source == "" {
			continue
		}
		path := i.seenAs(m)
		fi, err := os.Stat(path)
		switch {
		case err != nil:
		case m.Write && fi.IsDir():
			rules = append(rules, landlock.RWDirs(path).WithRefer())
		case m.Write:
			rules = append(rules, landlock.RWFiles(path))
		case fi.IsDir():
			rules = append(rules, landlock.RODirs(path))
		default:
			rules = append(rules, landlock.ROFiles(path))
		}
	}
	return landlock.V5.BestEffort().RestrictPaths(rules...)
}

// dropCapabilities drops the capabilities that the first process of a user namespace has, for good: without new
// privileges, no program can give them back.
func dropCapabilities() error {
	const secureBits = 0x2f // noroot, no setuid fixup, no keep_caps: the first two and the last one locked
	if err := child.AllThreads(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits); err != nil {
		return fmt.Errorf("securebits: %w", err)
	}
	return child.DropCapabilities()
}

// namespaceFlags are the flags of clone that make namespaces.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

const linuxTIOCLINUX = 0x541c // pastes into a console, as TIOCSTI does

// rules are the system calls that a command may not make: namespaces and mounts, other processes, keys, parts of the
// kernel with a history of vulnerabilities, and sockets that leave the command's network. A unix socket does: a path
// reaches servers outside, whatever the network namespace is; pairs of connected streams stay allowed.
var rules = append(
	seccomp.Deny(append([]uintptr{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	}, rulesHere...)...),
	seccomp.Rule{Call: unix.SYS_CLONE, If: []seccomp.Test{{Argument: 0, Mask: namespaceFlags}}, Errno: seccomp.Allow},
	seccomp.Rule{Call: unix.SYS_CLONE, Errno: unix.EPERM},
	seccomp.Rule{
		Call:  unix.SYS_CLONE3,
		Errno: unix.ENOSYS,
	}, // its flags are behind a pointer; callers fall back to clone
	// Its pages are nobody's resident memory unless mapped; callers fall back to a file.
	seccomp.Rule{Call: unix.SYS_MEMFD_CREATE, Errno: unix.ENOSYS},
	seccomp.Rule{Call: unix.SYS_MEMFD_SECRET, Errno: unix.ENOSYS},
	seccomp.Rule{Call: unix.SYS_IOCTL, If: []seccomp.Test{seccomp.Is(1, unix.TIOCSTI)}, Errno: unix.EPERM},
	seccomp.Rule{Call: unix.SYS_IOCTL, If: []seccomp.Test{seccomp.Is(1, linuxTIOCLINUX)}, Errno: unix.EPERM},
	seccomp.Rule{Call: unix.SYS_SOCKET, If: []seccomp.Test{seccomp.Is(0, unix.AF_INET)}, Errno: seccomp.Allow},
	seccomp.Rule{Call: unix.SYS_SOCKET, If: []seccomp.Test{seccomp.Is(0, unix.AF_INET6)}, Errno: seccomp.Allow},
	seccomp.Rule{
		Call: unix.SYS_SOCKET, Errno: seccomp.Allow, // interfaces and addresses of its own network
		If: []seccomp.Test{seccomp.Is(0, unix.AF_NETLINK), seccomp.Is(2, unix.NETLINK_ROUTE)},
	},
	seccomp.Rule{Call: unix.SYS_SOCKET, Errno: unix.EPERM},
	seccomp.Rule{
		Call: unix.SYS_SOCKETPAIR, Errno: seccomp.Allow, // a datagram socket of a pair could connect elsewhere
		If: []seccomp.Test{seccomp.Is(0, unix.AF_UNIX), {Argument: 1, Mask: 0xf, Value: unix.SOCK_STREAM}},
	},
	seccomp.Rule{Call: unix.SYS_SOCKETPAIR, Errno: unix.EPERM},
)

// loopbackUp switches on the loopback interface of a new network namespace: programs test their servers on it.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
