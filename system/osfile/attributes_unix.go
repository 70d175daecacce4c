//go:build linux || darwin

package osfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// CopyAttributes gives a file the owner, the extended attributes (among them access lists) and the mode of another
// one. Attributes that both have alike are not set, as those that the system sets by itself. An error names the first one
// that cannot be kept.
func CopyAttributes(from, to *os.File) error {
	was, err := from.Stat()
	if err != nil {
		return err
	}
	now, err := to.Stat()
	if err != nil {
		return err
	}
	a, b := was.Sys().(*syscall.Stat_t), now.Sys().(*syscall.Stat_t)
	if a.Uid != b.Uid || a.Gid != b.Gid {
		if err := to.Chown(int(a.Uid), int(a.Gid)); err != nil {
			return fmt.Errorf("its owner cannot be kept: %w", err)
		}
	}
	return Control(from, func(src int) error {
		return Control(to, func(dst int) error {
			if err := copyExtended(src, dst); err != nil {
				return err
			}
			// after the owner, whose change clears the set-user-ID bit
			return unix.Fchmod(dst, uint32(a.Mode)&0o7777) //nolint:unconvert // darwin's Mode is a uint16
		})
	})
}

// accessList is the attribute of an access list on Linux.
const accessList = "system.posix_acl_access"

func copyExtended(src, dst int) error {
	list, err := read(func(b []byte) (int, error) { return unix.Flistxattr(src, b) })
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	own, _ := read(func(b []byte) (int, error) { return unix.Flistxattr(dst, b) })
	if strings.Contains(string(own), accessList) && !strings.Contains(string(list), accessList) { // that of its directory
		if err := unix.Fremovexattr(dst, accessList); err != nil {
			return fmt.Errorf("it would have the access list of its directory: %w", err)
		}
	}
	for name := range strings.SplitSeq(string(list), "\x00") {
		if name == "" {
			continue
		}
		value, err := read(func(b []byte) (int, error) { return unix.Fgetxattr(src, name, b) })
		if err != nil {
			return fmt.Errorf("its attribute %s cannot be read: %w", name, err)
		}
		has, err := read(func(b []byte) (int, error) { return unix.Fgetxattr(dst, name, b) })
		if err == nil && string(has) == string(value) {
			continue
		}
		if err := unix.Fsetxattr(dst, name, value, 0); err != nil {
			return fmt.Errorf("its attribute %s cannot be kept: %w", name, err)
		}
	}
	return nil
}

// read returns what a call fills in that returns the size for an empty buffer.
func read(call func(b []byte) (int, error)) ([]byte, error) {
	for {
		n, err := call(nil)
		if n == 0 || err != nil {
			return nil, err
		}
		b := make([]byte, n)
		if n, err = call(b); !errors.Is(err, unix.ERANGE) {
			return b[:max(n, 0)], err
		}
	}
}

// Links returns how many names a file has.
func Links(at os.FileInfo) int {
	if s, ok := at.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink) //nolint:unconvert // it has another type on each system
	}
	return 1
}
