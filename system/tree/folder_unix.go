//go:build unix && !portable

package tree

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// ident identifies a file independently of its name.
type ident struct{ dev, ino uint64 }

func (a ident) same(b ident) bool { return a == b }

func identOf(at fs.FileInfo) ident {
	switch s := at.Sys().(type) {
	case *syscall.Stat_t:
		return ident{uint64(s.Dev), s.Ino} //nolint:unconvert // darwin's Dev is an int32
	case ident: // an [info]
		return s
	}
	return ident{}
}

func statIdent(s *unix.Stat_t) ident {
	return ident{uint64(s.Dev), s.Ino} //nolint:unconvert // darwin's Dev is an int32
}

// folder is an open directory below the root. Files in it are opened by one name, and links are never followed.
type folder struct{ fd int }

// top opens the root itself, with a descriptor from os.Root.
func (r *Root) top() (folder, error) {
	f, err := r.os.Open(".")
	if err != nil {
		return folder{-1}, err
	}
	return folderOf(f)
}

// folderAt opens a directory, following links inside the root.
func (r *Root) folderAt(rel string) (folder, error) {
	f, err := r.open(rel, openFlags|syscall.O_DIRECTORY)
	if err != nil {
		return folder{-1}, err
	}
	return folderOf(f)
}

// folderOf duplicates the descriptor of a directory and closes f.
func folderOf(f *os.File) (folder, error) {
	defer func() { _ = f.Close() }()
	d := folder{-1}
	err := osfile.Control(f, func(from int) (err error) {
		d.fd, err = unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 3)
		return err
	})
	return d, err
}

func (d folder) close() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd)
	}
}

func (d folder) openat(name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// openDir opens a directory in d.
func (d folder) openDir(name string) (folder, error) {
	fd, err := d.openat(name, unix.O_DIRECTORY|openFlags)
	return folder{fd}, err
}

// openFile opens a file of any type in d.
func (d folder) openFile(name string, flags int) (*os.File, error) {
	fd, err := d.openat(name, flags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (d folder) readlink(name string) (string, error) {
	buf := make([]byte, maxName+1)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func (d folder) id() (ident, error) {
	var s unix.Stat_t
	err := unix.Fstat(d.fd, &s)
	return statIdent(&s), err
}

// lstat describes a name in d, and does not follow a link.
func (d folder) lstat(name string) (info, error) {
	var s unix.Stat_t
	err := unix.Fstatat(d.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstatat(d.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return info{}, err
	}
	return info{
		name: name, size: s.Size, mod: time.Unix(s.Mtim.Unix()), id: statIdent(&s),
		changed: s.Ctim.Nano(), disk: s.Blocks * blockSize,
		mode: modeOf(uint32(s.Mode)), //nolint:unconvert // darwin's Mode is a uint16
	}, nil
}

// info is the [fs.FileInfo] of a name in a folder.
type info struct {
	name string
	size int64
	mode fs.FileMode
	mod  time.Time
	id   ident

	changed, disk int64 // see [Mark]
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.mod }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return i.id }

// types has the mode bits of each file type; the index is the type in st_mode without its 12 permission bits.
var types = [16]fs.FileMode{
	unix.S_IFDIR >> 12: fs.ModeDir, unix.S_IFLNK >> 12: fs.ModeSymlink, unix.S_IFIFO >> 12: fs.ModeNamedPipe,
	unix.S_IFSOCK >> 12: fs.ModeSocket, unix.S_IFBLK >> 12: fs.ModeDevice,
	unix.S_IFCHR >> 12: fs.ModeDevice | fs.ModeCharDevice,
}

// modeOf converts st_mode, without the set-user-ID, set-group-ID and sticky bits.
func modeOf(m uint32) fs.FileMode {
	mode := types[m&unix.S_IFMT>>12] | fs.FileMode(m&0o777)
	if mode.IsRegular() && m&unix.S_IFMT != unix.S_IFREG {
		mode |= fs.ModeIrregular
	}
	return mode
}
