package child

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// neutral is the working directory of a worker.
const neutral = "/"

// self is this very binary, even where its file was replaced or removed meanwhile.
func self() string { return "/proc/self/exe" }

// attributes of a worker process: a group of its own, dead when the parent is;
// isolated, it also has namespaces of its own: it sees no other process, no network, no shared memory.
func attributes(isolated bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if isolated {
		a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return a
}

func kill(p *os.Process) {
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
	_ = p.Kill()
}

// outOfCPU says whether the kernel ended a process because of its limit. What it counts towards
// the limit, in ticks of all threads, and what it reports afterwards differ by up to a quarter under load.
func outOfCPU(state *os.ProcessState, limit time.Duration) bool {
	w, ok := state.Sys().(syscall.WaitStatus)
	used := state.UserTime() + state.SystemTime()
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL && used >= limit*3/4
}

// confine puts the limits on this process, in an order in which each can still be put.
//
// RLIMIT_AS would break the Go runtime, which reserves far more than it uses;
// RLIMIT_DATA counts what can be written. Some 80 MiB of that are tables the
// runtime never touches, so the limit is put on top of what is there at the start. The runtime dies where it
// is denied memory, so its own goal stands below the limit.
func confine(memory, cpu int64) error {
	// First in line where the whole machine runs out of memory.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	debug.SetMemoryLimit(memory - memory/8)
	debug.SetMaxStack(int(memory / 4))
	for _, l := range []struct {
		name     string
		resource int
		value    int64
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, writable() + memory},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, max(cpu, 1)},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, 64},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},
	} {
		if l.resource == unix.RLIMIT_DATA && raceLinked {
			continue // the race detector's own tables are larger than the limit
		}
		r := unix.Rlimit{Cur: uint64(l.value), Max: uint64(l.value)}
		if err := unix.Setrlimit(l.resource, &r); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	// These are best effort: where they are missing, the layers above and below still hold, and Layers says so.
	_ = noNewPrivileges()
	_ = denyAll()
	return nil
}

// writable is how many bytes of this process the kernel counts against RLIMIT_DATA now.
func writable() int64 {
	const usual = 80 << 20
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return usual
	}
	fields := strings.Fields(string(b)) // the sixth is data and stack, in pages
	if len(fields) < 6 {
		return usual
	}
	pages, err := strconv.ParseInt(fields[5], 10, 64)
	if err != nil {
		return usual
	}
	return pages * int64(os.Getpagesize())
}

// allThreads makes a call on every thread of the process. It is not available to programs linked with cgo.
func allThreads(call, a, b, c uintptr) error {
	if _, _, e := syscall.AllThreadsSyscall(call, a, b, c); e != 0 {
		return e
	}
	return nil
}

// cgoLinked says that this program may hang as the first process of a new process namespace.
func cgoLinked() bool { return errors.Is(allThreads(unix.SYS_GETPID, 0, 0, 0), errors.ErrUnsupported) }

func noNewPrivileges() error {
	return allThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
}

// landlockABI is the version the kernel has, 0 where it has none.
func landlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// denyAll denies everything that the kernel's version of Landlock can deny: a rule set without a rule.
func denyAll() error { return landlock.V9.BestEffort().Restrict() }

// tryOut tries, inside a worker, what it should not be able to do.
func tryOut() []Layer {
	_, err := os.Open("/")
	denied := Layer{"landlock", errors.Is(err, os.ErrPermission), fmt.Sprintf("version %d: no file can be opened", landlockABI())}
	switch {
	case denied.Holds:
	case landlockABI() == 0:
		denied.Detail = "not in this kernel, or switched off"
	default:
		denied.Detail = "refused by the kernel"
	}
	v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	rights := Layer{"no new privileges", err == nil && v == 1, "what it executes gains no rights"}
	if !rights.Holds {
		rights.Detail = "not set"
	}
	var data, cpu unix.Rlimit
	err = errors.Join(unix.Getrlimit(unix.RLIMIT_DATA, &data), unix.Getrlimit(unix.RLIMIT_CPU, &cpu))
	limits := Layer{"limits", err == nil && data.Cur != unix.RLIM_INFINITY && cpu.Cur != unix.RLIM_INFINITY,
		"memory, processor time, open files, no core dumps, no file writes"}
	if !limits.Holds {
		limits.Detail = "memory is not limited"
	}
	return []Layer{denied, rights, limits}
}
