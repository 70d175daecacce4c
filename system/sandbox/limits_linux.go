//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const maxOpen = 4096 // open files of one process

// setLimits bounds each process of the command; [watch] bounds the tree.
func (i *initProcess) setLimits() error {
	const niceness = 5 // the server answers other calls meanwhile
	if !i.Input {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	}
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxOpen}
	if i.Memory > 0 {
		limits[unix.RLIMIT_DATA] = uint64(i.Memory) // RLIMIT_AS would break Go, Java and V8, which reserve far more
	}
	if i.Processes > 0 && i.Namespaces {
		// Without namespaces, all processes of the user would count.
		limits[unix.RLIMIT_NPROC] = uint64(i.Processes)
	}
	for resource, value := range limits {
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) == nil && now.Max < value {
			value = now.Max
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	i.scratch.begin(i.scratchDirs())
	return nil
}

// The limits of a tree that works are compared every watchEvery. While it uses no processor time that the kernel
// counts, the time doubles up to watchIdle: all growth between two comparisons is bounded to that.
const (
	watchEvery = 50 * time.Millisecond
	watchIdle  = time.Second
)

// watch compares the limits of a tree with what it uses.
type watch struct {
	*initProcess
	every       time.Duration // until the next comparison; 0: there is no limit
	next        time.Time
	used        [2]int // processes and clock ticks at the last comparison
	free        int64  // free space of all disks when the size of the scratch directory was last measured
	measured    time.Time
	measuring   time.Duration // how long that took
	scratchSize int64         // then; 0: it was not measured
}

func newWatch(i *initProcess) *watch {
	w := &watch{initProcess: i}
	if i.Processes > 0 || i.Memory > 0 || i.MinFree > 0 || i.ScratchMax > 0 {
		w.every, w.next = watchEvery, time.Now().Add(watchEvery)
	}
	return w
}

// timeout returns the milliseconds until the next comparison, -1 if there is none.
func (w *watch) timeout() int {
	if w.every == 0 {
		return -1
	}
	return int(max(0, time.Until(w.next)+time.Millisecond-1) / time.Millisecond)
}

// due reports whether it is time for a comparison.
func (w *watch) due() bool { return w.every > 0 && !time.Now().Before(w.next) }

// exceeded returns the limit that is exceeded, "" if none is.
func (w *watch) exceeded() string {
	pids := w.tree()
	used := [2]int{len(pids), ticks(pids)}
	if used == w.used {
		w.every = min(2*w.every, watchIdle)
	} else {
		w.every = watchEvery
	}
	w.used, w.next = used, time.Now().Add(w.every)
	if w.Processes > 0 && len(pids) > w.Processes {
		return fmt.Sprintf("%d processes", w.Processes)
	}
	if w.Memory > 0 && residentMemory(pids) > w.Memory {
		return sizeText(w.Memory) + " of memory"
	}
	free := int64(0)
	for n, m := range w.Mounts {
		if !m.Write || w.Namespaces && w.Sources[n].NotThere {
			continue
		}
		path := w.seenAs(m)
		var st unix.Statfs_t
		if unix.Statfs(path, &st) != nil {
			continue
		}
		here := int64(st.Bavail) * st.Bsize
		free += here // of all: the scratch directory may lie on another disk than the last of them
		if w.MinFree > 0 && here < w.MinFree {
			return fmt.Sprintf("the %s that must stay free on the disk of %s", sizeText(w.MinFree), path)
		}
	}
	scratch := w.scratchDirs()
	if w.ScratchMax <= 0 || len(scratch) == 0 || !w.mayBeFull(free) {
		return ""
	}
	size := directorySize(scratch, w.otherMounts()) + deletedFiles(pids)
	w.measuring = time.Since(w.measured)
	if w.overfills(pids, size) {
		return sizeText(w.ScratchMax) + " in the scratch directory: delete files in /tmp and $HOME"
	}
	return ""
}

// seenAs returns the path by which init sees the source of a mount.
func (i *initProcess) seenAs(m Mount) string {
	if i.Namespaces {
		return m.Target
	}
	return m.Source
}

// scratchDirs returns the directories of bounded size.
func (i *initProcess) scratchDirs() (dirs []string) {
	for _, m := range i.Mounts {
		if m.Write && m.Bounded {
			dirs = append(dirs, i.seenAs(m))
		}
	}
	return dirs
}

// otherMounts returns the directories without a bound. Those granted in the home of commands, such as a cache of the
// user, lie in the scratch directory, and their files do not count there.
func (i *initProcess) otherMounts() (dirs []string) {
	for _, m := range i.Mounts {
		if !m.Bounded {
			dirs = append(dirs, i.seenAs(m))
		}
	}
	return dirs
}

// mayBeFull reports whether the scratch directory must be measured: when a sixteenth of its size was written since, and
// if anything was written or deleted, every second, or as often as a measurement takes half a percent of the time.
func (w *watch) mayBeFull(free int64) bool {
	if w.free-free < w.ScratchMax/16 &&
		(free == w.free || time.Since(w.measured) < max(time.Second, 200*w.measuring)) {
		return false
	}
	w.free, w.measured = free, time.Now()
	return true
}

// directorySize returns the space that the files below directories take, but not below the others, in bytes. A directory
// that its owner may not read is made readable: otherwise a command could hide its files.
func directorySize(dirs, others []string) (size int64) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if e != nil && e.IsDir() && slices.Contains(others, path) {
				return fs.SkipDir
			}
			if errors.Is(err, fs.ErrPermission) && e.IsDir() &&
				os.Chmod(path, 0o700) == nil { //nolint:gosec // a command's
				size += directorySize([]string{path}, others)
				return nil
			}
			var st unix.Stat_t
			if err == nil && unix.Lstat(path, &st) == nil {
				size += st.Blocks * 512
			}
			return nil
		})
	}
	return size
}

// deletedFiles returns the space that files take which processes hold open after they were deleted, in bytes.
func deletedFiles(pids []int) (size int64) {
	seen := map[[2]uint64]bool{}
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd"
		names, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			var st unix.Stat_t
			if unix.Stat(dir+"/"+name.Name(), &st) != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
				continue
			}
			if id := [2]uint64{uint64(st.Dev), st.Ino}; !seen[id] { //nolint:unconvert // not on every system
				seen[id] = true
				size += st.Blocks * 512
			}
		}
	}
	return size
}

// residentMemory returns the sum of the processes' resident memory, in bytes, without pages of files. Anonymous memory
// that several processes share counts once for each: the kernel says only to tracers what is shared with whom.
func residentMemory(pids []int) (sum int64) {
	for _, pid := range pids {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		for line := range bytes.Lines(b) {
			name, value, _ := bytes.Cut(line, []byte(":"))
			if n := string(name); n != "RssAnon" && n != "RssShmem" {
				continue
			}
			if fields := bytes.Fields(value); len(fields) > 0 {
				kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
				sum += kib << 10
			}
		}
	}
	return sum
}

// ticks returns the processor time of processes and of the children that they have waited for, in clock ticks.
func ticks(pids []int) (sum int) {
	const user, children = 11, 15 // of the fields after the name: utime, stime, cutime, cstime
	for _, pid := range pids {
		if f := statOf(pid); len(f) >= children {
			for _, field := range f[user:children] {
				n, _ := strconv.Atoi(string(field))
				sum += n
			}
		}
	}
	return sum
}

// tree returns the processes of the command: in namespaces all but init, else init's descendants.
func (i *initProcess) tree() []int {
	if !i.Namespaces {
		if pids, ok := descendants(os.Getpid()); ok {
			return pids
		}
	}
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close() //nolint:errcheck // nothing was written to it
	names, _ := d.Readdirnames(-1)
	var pids []int
	parents := map[int]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		pids = append(pids, pid)
		if f := statOf(pid); !i.Namespaces && len(f) > 1 {
			parents[pid], _ = strconv.Atoi(string(f[1]))
		}
	}
	if i.Namespaces {
		return pids
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		up := pid
		for range len(pids) {
			if up = parents[up]; up == os.Getpid() || up == 0 {
				break
			}
		}
		return up != os.Getpid()
	})
}

// descendants returns the processes below one, by the lists of children that the kernel keeps; ok is false if it was
// built without them (CONFIG_PROC_CHILDREN). A process that ends meanwhile gives its children to init: what this call
// misses, the next one finds.
func descendants(pid int) (pids []int, ok bool) {
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil || len(tasks) == 0 {
		return nil, false
	}
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // it is empty if the task has ended
		for _, field := range bytes.Fields(b) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				below, _ := descendants(child)
				pids = append(append(pids, child), below...)
			}
		}
	}
	return pids, true
}

// statOf returns the fields of /proc/PID/stat after the name: state, parent and so on; nil if the process is gone.
func statOf(pid int) [][]byte {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name of the program, in parentheses, may hold any byte.
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}

func sizeText(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
