//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountSources are the sources of a command's mounts. A server of root passes them as detached mounts whose owners are
// mapped, because the command's user may not even reach them by path. Other servers pass paths with the identity of the
// file, which init compares after it has opened the path: nothing can be exchanged between check and use.
type mountSources struct {
	ids   []sourceID
	files []*os.File
}

func (m *mountSources) close() {
	for _, f := range m.files {
		_ = f.Close()
	}
}

func (m *mountSources) open(mounts []Mount) error {
	for _, one := range mounts {
		id, err := m.openOne(one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Source, err)
		}
		m.ids = append(m.ids, id)
	}
	return nil
}

func (m *mountSources) openOne(one Mount) (id sourceID, err error) {
	if one.Source == "" {
		return sourceID{File: one.File}, nil
	}
	source, err := openSource(one)
	if one.Maybe && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)) {
		return sourceID{NotThere: true}, nil
	} else if err != nil {
		return id, err
	}
	defer unix.Close(source) //nolint:errcheck // nothing was written to it
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return id, err
	}
	id = sourceID{Device: st.Dev, Inode: st.Ino, File: st.Mode&unix.S_IFMT != unix.S_IFDIR}
	if os.Geteuid() != 0 {
		return id, nil
	}
	fd, err := detached(source)
	if errors.Is(err, unix.EPERM) {
		return id, nil // this root has no right to mount: its commands read what anyone may
	}
	if err != nil {
		return id, err
	}
	m.files = append(m.files, os.NewFile(uintptr(fd), one.Source))
	id.Detached = len(m.files)
	return id, nil
}

// detached returns a mount of a source, of which files of root belong to the command's user. If the file system cannot
// map owners, the command reads and writes what anyone may.
func detached(source int) (int, error) {
	owner, err := owners()
	if err != nil {
		return 0, err
	}
	fd, err := openTree(source, "")
	if err != nil {
		return 0, err
	}
	_ = mapOwners(fd, owner)
	return fd, nil
}

// mapOwners maps the owners of files in detached mounts.
func mapOwners(fd int, owner *os.File) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(owner.Fd())}
	if unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr) == nil {
		return nil
	}
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr) // perhaps a mount below cannot
}

// MapsOwners reports whether commands of a server of root own the files of root below a directory, which they otherwise
// can use only as anyone may. Commands of other servers need no mapping: theirs are the server's own files.
func MapsOwners(dir string) (needed bool, err error) {
	if os.Geteuid() != 0 {
		return false, nil
	}
	owner, err := owners()
	if err != nil {
		return true, err
	}
	source, err := openSource(Mount{Source: dir})
	if err != nil {
		return true, err
	}
	defer unix.Close(source) //nolint:errcheck // nothing was written to it
	fd, err := openTree(source, "")
	if err != nil {
		return true, err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	return true, mapOwners(fd, owner)
}

// openSource opens the source of a mount.
func openSource(one Mount) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC}
	if one.Plain {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	return unix.Openat2(unix.AT_FDCWD, one.Source, &how)
}

// openTree returns a detached copy of the mounts at a path, or at an open directory if the path is empty.
func openTree(at int, path string) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_SYMLINK_NOFOLLOW)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(at, path, flags)
	if err != nil {
		return 0, fmt.Errorf("open_tree: %w", err)
	}
	return fd, nil
}

// owners returns a user namespace that maps files of root to [commandUID]. It is opened once and stays open.
var owners = sync.OnceValues(func() (*os.File, error) {
	cmd := exec.Command(initBinary, argument, asOwner) //nolint:noctx // it ends with its standard input
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL}
	mapUser(a)
	a.Credential = nil
	cmd.SysProcAttr, cmd.Env = a, []string{"GOTRACEBACK=none"}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, &Unavailable{layerNamespaces, err}
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	_ = in.Close()
	_ = cmd.Wait()
	return f, err
})
