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

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/child"
)

// workDir is the working directory of a worker.
const workDir = "/"

// ownBinary returns this very binary, even if its file was replaced or removed.
func ownBinary() string { return "/proc/self/exe" }

// attributes returns the attributes of a worker process: its own process group, and SIGKILL when the parent dies. An
// isolated worker also gets namespaces: it sees no other processes, no network and no shared memory, and others do not
// see its mounts.
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

// killGroup kills a worker and all processes that the worker started. Call it before the worker is reaped: until then
// no other process can get the worker's pid.
func killGroup(p *os.Process) { _ = unix.Kill(-p.Pid, unix.SIGKILL) }

// awaitEnd waits until a process has ended, without reaping it. It returns false if that is not possible.
func awaitEnd(p *os.Process) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// outOfCPU reports whether the kernel killed a process at its CPU limit. The CPU time that the kernel compares with the
// limit, in ticks of all threads, and the CPU time that it reports differ by up to a quarter under load.
func outOfCPU(state *os.ProcessState, limit time.Duration) bool {
	w, ok := state.Sys().(syscall.WaitStatus)
	used := state.UserTime() + state.SystemTime()
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL && used >= limit*3/4
}

// confined is this process after it has dropped its rights; start is its memory then, in bytes.
type confined struct{ start int64 }

// confine drops the rights that a worker does not need, in an order in which each step is still permitted.
func confine() (confined, error) {
	// If the machine runs out of memory, the kernel kills this process first.
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
			continue // without its own namespace, all processes of the user count
		}
		if err := setLimit(l.name, l.resource, l.value); err != nil {
			return c, err
		}
	}
	// Best effort: if one layer is missing, the others still work, and Layers reports the missing one.
	_ = child.AllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	// A rule set without rules denies all that the kernel's version of Landlock can deny.
	landlockFailed = landlock.V9.BestEffort().Restrict()
	_ = child.DropCapabilities()
	filterFailed = filterCalls()
	return c, nil
}

// limit bounds memory, in bytes, and CPU time, in seconds, for a job.
//
// It sets RLIMIT_DATA, which counts writable memory: RLIMIT_AS would break the Go runtime, which reserves far more
// memory than it uses. Some 80 MiB of the writable memory are tables that the runtime never touches, so limit adds
// memory to the size at the start. The runtime dies when the kernel refuses memory, so its own soft limit is lower.
func (c confined) limit(memory, cpu int64) error {
	debug.SetMemoryLimit(memory - memory/8)
	debug.SetMaxStack(int(memory / 4))
	if !RaceLinked { // the race detector's own tables are larger than the limit
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

// landlockFailed and filterFailed are why these two layers are missing, for Layers.
var landlockFailed, filterFailed error

// maxOpen is how many files a worker may have open: more than it gets and the runtime needs.
const maxOpen = 64

// maxThreads is how many threads a worker may have. The Go runtime needs far fewer: one for each core, and one for each
// blocking call.
const maxThreads = 256

// machineMemory returns the memory of this machine, or of its container if that is less, in bytes; 0 if it is unknown.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	total := int64(info.Totalram) * int64(info.Unit)
	b, _ := os.ReadFile("/sys/fs/cgroup/memory.max") // "max" without a limit
	if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
		total = min(total, n)
	}
	return total
}

// dataBytes returns how many bytes of this process count against RLIMIT_DATA now, the usual 80 MiB if it cannot be
// read.
func dataBytes() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(b)); len(fields) > 5 { // the sixth field is data and stack, in pages
		if pages, err := strconv.ParseInt(fields[5], 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return 80 << 20
}

// cgoLinked reports whether this program may hang as the first process of a new process namespace.
func cgoLinked() bool {
	return errors.Is(child.AllThreads(unix.SYS_GETPID, 0, 0), errors.ErrUnsupported)
}
