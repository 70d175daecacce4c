package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// neutral is the working directory of a worker.
const neutral = "/"

// ownBinary returns this very binary, even if its file was replaced or removed.
func ownBinary() string { return "/proc/self/exe" }

// attributes returns the attributes of a worker process: its own process group, killed when the parent dies; isolated,
// it also has its own namespaces: no other processes, no network, no shared memory, and no mounts visible to others.
func attributes(isolated bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if isolated {
		a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// killGroup kills a worker and all processes it started. The worker must not have been waited for: until then no other
// process can get its pid.
func killGroup(p *os.Process) { _ = unix.Kill(-p.Pid, unix.SIGKILL) }

// awaitEnd waits until a process has ended, without reaping it.
func awaitEnd(p *os.Process) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// outOfCPU reports whether the kernel ended a process at its CPU limit. The CPU time it counts towards the limit, in
// ticks of all threads, and the time it reports differ by up to a quarter under load.
func outOfCPU(state *os.ProcessState, limit time.Duration) bool {
	w, ok := state.Sys().(syscall.WaitStatus)
	used := state.UserTime() + state.SystemTime()
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL && used >= limit*3/4
}

// confined is a process that has given up its rights, and the memory it started with.
type confined struct{ start int64 }

// confine gives up the rights that a worker does not need, in an order in which each step is still permitted.
func confine() (confined, error) {
	// Be the first to be killed if the machine runs out of memory.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	c := confined{start: dataBytes()}
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, maxOpen},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, maxThreads},
	} {
		if l.resource == unix.RLIMIT_NPROC && os.Getpid() != 1 {
			continue // without its own namespace all processes of the user would count
		}
		if err := setLimit(l.name, l.resource, l.value); err != nil {
			return c, err
		}
	}
	// Best effort: if one is missing the other layers still work, and Layers reports it.
	_ = noNewPrivileges()
	landlockFailed = denyAll()
	_ = dropCapabilities()
	filterFailed = filterCalls()
	return c, nil
}

// limit bounds memory and CPU time for a job.
//
// RLIMIT_AS would break the Go runtime, which reserves far more memory than it uses, so this sets RLIMIT_DATA, which
// counts writable memory. Some 80 MiB of that are tables the runtime never touches, so the limit is added to the size
// at the start. The runtime dies when it is denied memory, so its own soft limit is lower.
func (c confined) limit(memory, cpu int64) error {
	debug.SetMemoryLimit(memory - memory/8)
	debug.SetMaxStack(int(memory / 4))
	if !raceLinked { // the race detector's own tables are larger than the limit
		if err := setLimit("RLIMIT_DATA", unix.RLIMIT_DATA, uint64(c.start+memory)); err != nil {
			return err
		}
	}
	return setLimit("RLIMIT_CPU", unix.RLIMIT_CPU, uint64(cpu))
}

func setLimit(name string, resource int, value uint64) error {
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Errors of these two layers, for Layers.
var landlockFailed, filterFailed error

// maxOpen is more than the files of a worker and those the runtime needs.
const maxOpen = 64

// maxThreads is far more than the Go runtime needs: one for each core, and one for each blocking call.
const maxThreads = 256

// dataBytes returns how many bytes of this process count against RLIMIT_DATA now.
func dataBytes() int64 {
	const usual = 80 << 20
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return usual
	}
	fields := strings.Fields(string(b)) // the sixth field is data and stack, in pages
	if len(fields) < 6 {
		return usual
	}
	pages, err := strconv.ParseInt(fields[5], 10, 64)
	if err != nil {
		return usual
	}
	return pages * int64(os.Getpagesize())
}

// allThreads makes a system call on every thread. It is not available to programs linked with cgo.
func allThreads(call, a, b, c uintptr) error {
	if _, _, e := syscall.AllThreadsSyscall(call, a, b, c); e != 0 {
		return e
	}
	return nil
}

// cgoLinked reports whether this program may hang as the first process of a new process namespace.
func cgoLinked() bool { return errors.Is(allThreads(unix.SYS_GETPID, 0, 0, 0), errors.ErrUnsupported) }

// dropCapabilities drops the capabilities of root, or of the first process in a user namespace.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
}

func noNewPrivileges() error {
	return allThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
}

// landlockABI returns the kernel's version of Landlock, 0 if it has none.
func landlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// denyAll denies everything that the kernel's version of Landlock can deny: a rule set without rules.
func denyAll() error { return landlock.V9.BestEffort().Restrict() }
