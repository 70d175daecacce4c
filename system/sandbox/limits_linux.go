//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const maxOpen = 4096 // open files of one process

// setLimits bounds each process of the command; watchLimits bounds the tree.
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
	return nil
}

// watchEvery is how often the limits of the tree are compared.
const watchEvery = 50 * time.Millisecond

// watch remembers what the limits were compared with.
type watch struct {
	*initProcess
	free        int64 // free space when the size of the scratch directory was last measured
	measured    time.Time
	scratchSize int64 // then; 0: it was not measured
}

// exceeded returns the limit that is exceeded, "" if none is.
func (w *watch) exceeded() string {
	pids := w.tree()
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
		free = int64(st.Bavail) * st.Bsize
		if w.MinFree > 0 && free < w.MinFree {
			return fmt.Sprintf("the %s that must stay free on the disk of %s", sizeText(w.MinFree), path)
		}
	}
	scratch := w.scratchDirs()
	if w.ScratchMax <= 0 || len(scratch) == 0 || !w.mayBeFull(free) {
		return ""
	}
	size := directorySize(scratch) + deletedFiles(pids)
	w.scratchSize = size
	if size > max(w.ScratchMax, w.ScratchNow) { // a command may delete what earlier ones have left
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

// mayBeFull reports whether the scratch directory must be measured: every second, and when a sixteenth of its size was
// written meanwhile.
func (w *watch) mayBeFull(free int64) bool {
	if w.free-free < w.ScratchMax/16 && time.Since(w.measured) < time.Second {
		return false
	}
	w.free, w.measured = free, time.Now()
	return true
}

// directorySize returns the space that the files below directories take, in bytes. A directory that its owner may not
// read is made readable: otherwise a command could hide its files.
func directorySize(dirs []string) (size int64) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrPermission) && e.IsDir() &&
				os.Chmod(path, 0o700) == nil { //nolint:gosec // a command's
				size += directorySize([]string{path})
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

// tree returns the processes of the command: in namespaces all but init, else init's descendants.
func (i *initProcess) tree() []int {
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
		if !i.Namespaces {
			parents[pid] = parentOf(pid)
		}
	}
	if i.Namespaces {
		return pids
	}
	var ours []int
	for _, pid := range pids {
		up := pid
		for range len(pids) {
			if up = parents[up]; up == os.Getpid() || up == 0 {
				break
			}
		}
		if up == os.Getpid() {
			ours = append(ours, pid)
		}
	}
	return ours
}

// parentOf returns the parent of a process, 0 if it is gone.
func parentOf(pid int) int {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name of the program, in parentheses, may hold any byte.
	if end := bytes.LastIndexByte(b, ')'); end > 0 {
		if fields := bytes.Fields(b[end+1:]); len(fields) > 1 {
			parent, _ := strconv.Atoi(string(fields[1]))
			return parent
		}
	}
	return 0
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
