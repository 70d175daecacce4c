//go:build linux && !portable

package tree

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// CreateUnnamed creates a file directly in the root that has no name, so that nothing stays of it if this process dies.
// The error is errors.ErrUnsupported if the file system has no such files.
func (r *Root) CreateUnnamed(mode fs.FileMode) (*os.File, error) {
	f, err := r.os.OpenFile(".", os.O_RDWR|unix.O_TMPFILE, mode)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		err = errors.ErrUnsupported
	}
	return f, withoutPath(err)
}

// NameIn gives an unnamed file a name directly in the root, which must not exist.
func (r *Root) NameIn(f *os.File, base string) error {
	dir, err := r.File()
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	return osfile.Control(f, func(fd int) error {
		return osfile.Control(dir, func(in int) error {
			return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), in, base, unix.AT_SYMLINK_FOLLOW)
		})
	})
}

// rename is [Rename]; its error is errors.ErrUnsupported where the file system does not know whether it would replace.
func rename(from *Root, base string, to *Root, name string, replace bool) error {
	if replace {
		return renameAt(from, base, to, name, 0)
	}
	return renameAt(from, base, to, name, unix.RENAME_NOREPLACE)
}

// ExchangeIn exchanges the names of two files directly in the root. The error is errors.ErrUnsupported if this system or
// the file system cannot.
func (r *Root) ExchangeIn(one, other string) error {
	return renameAt(r, one, r, other, unix.RENAME_EXCHANGE)
}

func renameAt(from *Root, base string, to *Root, name string, flags uint) error {
	a, err := from.File()
	if err != nil {
		return err
	}
	defer a.Close() //nolint:errcheck // nothing was written
	b, err := to.File()
	if err != nil {
		return err
	}
	defer b.Close() //nolint:errcheck // nothing was written
	return osfile.Control(a, func(x int) error {
		return osfile.Control(b, func(y int) error {
			err := unix.Renameat2(x, base, y, name, flags)
			if errors.Is(err, unix.EINVAL) && flags != 0 { // NFS
				err = errors.ErrUnsupported
			}
			return err
		})
	})
}
