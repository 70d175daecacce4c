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
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// neutral is the working directory of a worker.
const neutral = "/"

// self is this very binary, even where its file was replaced or removed meanwhile.
func self() string { return "/proc/self/exe" }

// attributes of a worker process: a group of its own, dead when the parent is;
// isolated, it also has namespaces of its own: it sees no other process, no network, no shared memory, and no mount of its can be seen.
func attributes(isolated bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if isolated {
		a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// killGroup kills a worker and all that it may have started. The caller makes sure that the worker, dead or not,
// was not waited for yet: until then no other process can get its number.
func killGroup(p *os.Process) { _ = unix.Kill(-p.Pid, unix.SIGKILL) }

// awaitEnd returns when a process has ended, and leaves it to be waited for.
func awaitEnd(p *os.Process) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// outOfCPU says whether the kernel ended a process because of its limit. What it counts towards
// the limit, in ticks of all threads, and what it reports afterwards differ by up to a quarter under load.
func outOfCPU(state *os.ProcessState, limit time.Duration) bool {
	w, ok := state.Sys().(syscall.WaitStatus)
	used := state.UserTime() + state.SystemTime()
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL && used >= limit*3/4
}

// confined is a process that gave up its rights, and what its memory is limited from.
type confined struct{ start int64 }

// confine takes from this process what no worker needs, in an order in which each can still be taken.
func confine() (confined, error) {
	// First in line where the whole machine runs out of memory.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	c := confined{start: writable()}
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
			continue // outside a namespace of its own everything the user runs would count
		}
		if err := set(l.name, l.resource, l.value); err != nil {
			return c, err
		}
	}
	// These are best effort: where they are missing, the layers above and below still hold, and Layers says so.
	_ = noNewPrivileges()
	landlockFailed = denyAll()
	_ = dropCapabilities()
	filterFailed = filterCalls()
	return c, nil
}

// limit bounds memory and time for a job.
//
// RLIMIT_AS would break the Go runtime, which reserves far more than it uses;
// RLIMIT_DATA counts what can be written. Some 80 MiB of that are tables the
// runtime never touches, so the limit is put on top of what is there at the start. The runtime dies where it
// is denied memory, so its own goal stands below the limit.
func (c confined) limit(memory, cpu int64) error {
	debug.SetMemoryLimit(memory - memory/8)
	debug.SetMaxStack(int(memory / 4))
	if !raceLinked { // the race detector's own tables are larger than the limit
		if err := set("RLIMIT_DATA", unix.RLIMIT_DATA, uint64(c.start+memory)); err != nil {
			return err
		}
	}
	return set("RLIMIT_CPU", unix.RLIMIT_CPU, uint64(cpu))
}

func set(name string, resource int, value uint64) error {
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// What these two said, for Layers.
var landlockFailed, filterFailed error

// maxOpen is over what the runtime needs besides the files a worker is given.
const maxOpen = 64

// maxThreads is far over what the Go runtime needs: one for each core, and one for each call that blocks.
const maxThreads = 256

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

// dropCapabilities gives up those that root has, or that the first process of a user namespace gets.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
}

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
