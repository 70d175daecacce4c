//go:build linux || darwin

package storefs

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// freeBytes returns how many bytes an ordinary user may still write to the disk of dir.
func freeBytes(dir *os.File, _ string) (int64, error) {
	var st unix.Statfs_t
	err := osfile.Control(dir, func(fd int) error { return unix.Fstatfs(fd, &st) })
	return int64(st.Bavail) * int64(st.Bsize), err //nolint:unconvert // darwin's Bsize is a uint32
}
