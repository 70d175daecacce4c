package tree

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// openFlags keep open from blocking on a FIFO and from acquiring a terminal. A 32-bit process opens files of 2 GiB and
// more only with O_LARGEFILE, which os.Root does not set.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_LARGEFILE

// Created returns when a file was created; [errors.ErrUnsupported] if its file system does not record it.
func Created(f *os.File) (at time.Time, err error) {
	var s unix.Statx_t
	err = osfile.Control(f, func(fd int) error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &s) })
	switch {
	case err != nil:
		return at, err
	case s.Mask&unix.STATX_BTIME == 0:
		return at, errors.ErrUnsupported
	}
	return time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)), nil
}

// maxMounts is how many bytes of the mount list are read; machines full of containers have 1 MiB.
const maxMounts = 16 << 20

// mountedBelow reports whether a file system is mounted in dir, because a denied path elsewhere may then be reachable
// through it; true if unknown. Mounting takes privileges that the content of a root does not have, so later mounts are
// the operator's own.
func mountedBelow(dir string) bool {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	limited := &io.LimitedReader{R: f, N: maxMounts}
	for lines := bufio.NewReader(limited); ; {
		line, err := lines.ReadString('\n')
		if fields := strings.Fields(line); len(fields) > 4 {
			if rel, ok := relUnder(dir, unescapeMount(fields[4])); ok && rel != "." {
				return true
			}
		}
		if err != nil {
			return err != io.EOF || limited.N == 0
		}
	}
}

// unescapeMount decodes blank, tab, newline and backslash, which the list writes as three octal digits.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
