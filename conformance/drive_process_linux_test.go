package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// statusOf returns a number of /proc/PID/status, such as VmRSS in KiB.
func statusOf(pid int, field string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(b), "\n"+field+":")
	if !found {
		return 0, fmt.Errorf("process %d has no %s: it has ended", pid, field)
	}
	return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
}

// highWater returns the peak memory of a process in bytes; false if it has ended.
func highWater(pid int) (int64, bool) {
	kib, err := statusOf(pid, "VmHWM")
	return kib << 10, err == nil
}

func (p *process) peak() int64 {
	p.t.Helper()
	n, ok := highWater(p.pid())
	if !ok {
		p.t.Fatalf("process %d has ended", p.pid())
	}
	return n
}

// descriptorsOf returns the number of open file descriptors of a process.
func descriptorsOf(pid int) (int, error) {
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(names), err
}

func (p *process) descriptors() int {
	p.t.Helper()
	return expect.Value(descriptorsOf(p.pid()))(p.t)
}

// children returns the descendants of the process.
func (p *process) children() []int { return below(p.pid()) }

// statFields returns the fields of /proc/PID/stat from the state on; none: there is no such process.
func statFields(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// stat returns the state and the parent of a process from /proc; state 0: no such process.
func stat(pid int) (state byte, parent int) {
	f := statFields(pid)
	if len(f) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(f[1])
	return f[0][0], parent
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	state, _ := stat(pid)
	return state != 0 && state != 'Z' && state != 'X'
}

// below returns the descendants of a process.
func below(pid int) []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	parents := map[int]int{}
	for _, name := range names {
		n, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if state, parent := stat(n); state != 0 && state != 'Z' {
			parents[n] = parent
		}
	}
	var all []int
	for _, n := range slices.Sorted(maps.Keys(parents)) {
		for p := n; p > 1; p = parents[p] {
			if parents[p] == pid {
				all = append(all, n)
				break
			}
		}
	}
	return all
}

// toil is the processor time in ticks of 10 ms after which a worker counts as working on its job: by then it has read
// all its input and cannot notice that its input was closed.
const toil = 5

// awaitWork waits until one of the processes works on a job, not merely waits for one, or until over reports the end.
func awaitWork(limit time.Duration, pids func() []int, over func() bool) error {
	begun := map[int]int{}
	works := func(pid int) bool {
		used, hired := ticks(pid), hasJob(pid)
		if !hired {
			return false
		}
		if _, seen := begun[pid]; !seen {
			begun[pid] = used
		}
		return used >= begun[pid]+toil
	}
	worked := false
	waitFor(limit, func() bool {
		worked = slices.ContainsFunc(pids(), works)
		return worked || over()
	})
	if !worked {
		return fmt.Errorf("none of the processes %v came to work within %s", pids(), limit)
	}
	return nil
}

// ticks returns the processor time of a process, in ticks of 10 ms.
func ticks(pid int) int {
	f := statFields(pid)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return user + system
}

// hasJob reports whether a worker has a job: only then is its processor time limited.
func hasJob(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(b), "Max cpu time")
	f := strings.Fields(rest)
	return found && len(f) > 0 && f[0] != "unlimited"
}
