//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"cmp"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// scratchUse says which part of the scratch directory, which commands of one client share, is of this command.
type scratchUse struct {
	lock  *os.File // has a lock for reading while the command runs
	count int64    // see [scratchUse.begin], at the last measurement
	other bool     // another command ran then
	grown int64    // bytes by which the directory grew while none did
}

// begin locks the scratch directory before the command starts, and counts the commands that ever ran in it: the time of
// the last access is a number of seconds after a day that no clock shows.
func (u *scratchUse) begin(dirs []string) {
	if len(dirs) == 0 {
		return
	}
	f, err := os.Open(dirs[0])
	if err != nil {
		return
	}
	info, err := f.Stat()
	if err != nil || unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}) != nil {
		_ = f.Close()
		return
	}
	const day = 1 << 32 // in 2106
	u.lock = f
	u.count = max(accessed(f), day) + 1
	_ = os.Chtimes(dirs[0], time.Unix(u.count, 0), info.ModTime())
	u.wasAlone() // of two that count at once and get one number, one sees the lock of the other
}

func accessed(f *os.File) int64 {
	var st unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &st)
	return int64(st.Atim.Sec) //nolint:unconvert // not on every system
}

// wasAlone reports whether no other command has run since the last call; without locks, none has.
func (u *scratchUse) wasAlone() bool {
	if u.lock == nil {
		return true
	}
	another := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(u.lock.Fd(), unix.F_OFD_GETLK, &another)
	before, other, count := *u, err == nil && another.Type != unix.F_UNLCK, accessed(u.lock)
	u.other, u.count = other, count
	return !before.other && !other && before.count == count
}

// overfills reports whether the scratch directory has a size over its limit and this command may be the one that filled
// it: it has written a quarter of the excess, or of a sixteenth of the limit, whatever it wrote to; or the directory
// grew so far while it ran alone, because not all that fills a file counts as written.
func (w *watch) overfills(pids []int, size int64) bool {
	if w.scratch.wasAlone() {
		w.scratch.grown += max(0, size-cmp.Or(w.scratchSize, w.ScratchNow))
	}
	w.scratchSize = size
	limit := max(w.ScratchMax, w.ScratchNow) // a command may delete what earlier ones have left
	if size <= limit {
		return false
	}
	sum := writtenBy("self") // with those that it has waited for
	for _, pid := range pids {
		sum += writtenBy(strconv.Itoa(pid))
	}
	return 4*max(sum, w.scratch.grown) >= max(size-limit, limit/16)
}

// writtenBy returns how many bytes a process wrote, and the children that it has waited for; a large number if the
// kernel does not count them.
func writtenBy(pid string) (n int64) {
	b, err := os.ReadFile("/proc/" + pid + "/io")
	if err != nil && pid != "self" {
		return 0 // it has ended: its parent has its count
	}
	if err != nil {
		return 1 << 50
	}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		if s := string(name); s == "wchar" || s == "write_bytes" { // the second has mapped files too, but none of tmpfs
			count, _ := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			n = max(n, min(count, 1<<50))
		}
	}
	return n
}
