//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Names below the root of the old mounts while the view is built.
const (
	oldRoot = "/old"
	newRoot = "/new"
)

// devices are the devices that every command may use.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// links are in /dev, for shells.
var links = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
}

const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// buildView gives this process a root directory in which only the system's directories and the mounts exist.
func (i *initProcess) buildView() error {
	if err := i.enterBase(); err != nil {
		return err
	}
	for _, dir := range SystemDirs {
		if err := mountSystem(dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	for n, m := range i.Mounts {
		if err := i.mount(m, i.Sources[n]); err != nil {
			return fmt.Errorf("%s: %w", m.Target, err)
		}
	}
	if err := mountProc(); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := mountDevices(); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	return leaveBase()
}

// enterBase makes an empty file system the root: the old one is at oldRoot, the view grows at newRoot.
func (i *initProcess) enterBase() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	base := "/tmp"
	if fi, err := os.Stat(base); err != nil || !fi.IsDir() {
		base = "/usr"
	}
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	for _, dir := range []string{oldRoot, newRoot} {
		if err := os.Mkdir(base+dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(base, base+oldRoot); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	return nil
}

// leaveBase makes the view the root, read-only, and detaches everything else.
func leaveBase() error {
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: readOnly})
}

// mountSystem mounts a directory of the system read-only, or repeats the link that is in its place.
func mountSystem(dir string) error {
	fi, err := os.Lstat(oldRoot + dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case fi.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(oldRoot + dir)
		if err != nil {
			return err
		}
		return os.Symlink(to, newRoot+dir)
	}
	return bind(dir, dir, false, readOnly)
}

// mount adds one of the command's mounts to the view.
func (i *initProcess) mount(m Mount, id sourceID) error {
	if id.NotThere {
		return nil
	}
	attributes := uint64(readOnly)
	if m.Write {
		attributes &^= unix.MOUNT_ATTR_RDONLY
	}
	switch {
	case m.Source == "" && id.File:
		return bind("/dev/null", m.Target, true, readOnly|unix.MOUNT_ATTR_NODEV)
	case m.Source == "":
		fd, err := newFileSystem("tmpfs", [2]string{"size", "4k"})
		if err != nil {
			return err
		}
		return attach(fd, m.Target, false, readOnly)
	case id.Detached > 0:
		return attach(i.mounts[id.Detached-1], m.Target, id.File, attributes)
	}
	fd, err := openTree(unix.AT_FDCWD, filepath.Join(oldRoot, m.Source))
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Dev != id.Device || st.Ino != id.Inode {
		return errors.New("it was replaced meanwhile")
	}
	return attach(fd, m.Target, id.File, attributes)
}

// newFileSystem returns a detached file system with these options, each a name and a value.
func newFileSystem(kind string, options ...[2]string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(fs) //nolint:errcheck // nothing was written to it
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return 0, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return 0, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}

// bind mounts a path of the old root at a target of the view.
func bind(path, target string, file bool, attributes uint64) error {
	fd, err := openTree(unix.AT_FDCWD, oldRoot+path)
	if err != nil {
		return err
	}
	return attach(fd, target, file, attributes)
}

// attach sets the attributes of a detached mount and attaches it to the view. No part of the target is followed if it
// is a link: commands write to directories in which later targets lie.
func attach(fd int, target string, file bool, attributes uint64) error {
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	attr := unix.MountAttr{Attr_set: attributes}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	at, err := mountPoint(target, file)
	if err != nil {
		return err
	}
	defer unix.Close(at) //nolint:errcheck // nothing was written to it
	if err := unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}

// mountPoint opens the target in the view, and makes the directories, or the file, that are missing.
func mountPoint(target string, file bool) (int, error) {
	at, err := unix.Open(newRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	names := strings.Split(strings.Trim(target, "/"), "/")
	if names[0] == "" {
		return at, nil
	}
	for n, name := range names {
		last := file && n == len(names)-1
		next, err := openName(at, name, last)
		_ = unix.Close(at)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", "/"+strings.Join(names[:n+1], "/"), err)
		}
		at = next
	}
	return at, nil
}

// openName opens one name below a directory, and makes it if it is missing. Commands that start at once share the
// directories that they may write to, so another one may have made it meanwhile.
func openName(dir int, name string, file bool) (int, error) {
	flags := unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if !file {
		flags |= unix.O_DIRECTORY
	}
	fd, err := unix.Openat(dir, name, flags, 0)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	if file {
		made, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_CLOEXEC, 0o444)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return 0, err
		}
		if err == nil {
			_ = unix.Close(made)
		}
	} else if err := unix.Mkdirat(dir, name, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return 0, err
	}
	return unix.Openat(dir, name, flags, 0)
}

func mountProc() error {
	fd, err := newFileSystem("proc")
	if err != nil {
		return fmt.Errorf("a container that hides parts of its own /proc lets nobody mount another: %w", err)
	}
	return attach(fd, "/proc", false, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

func mountDevices() error {
	if err := os.MkdirAll(newRoot+"/dev", 0o755); err != nil {
		return err
	}
	for _, name := range devices {
		if err := bind("/dev/"+name, "/dev/"+name, true, unix.MOUNT_ATTR_NOSUID); err != nil {
			return err
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, newRoot+"/dev/"+name); err != nil {
			return err
		}
	}
	fd, err := newFileSystem("tmpfs", [2]string{"size", strconv.Itoa(sharedSize)}, [2]string{"mode", "1777"})
	if err != nil {
		return err
	}
	return attach(fd, "/dev/shm", false, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

const sharedSize = 64 << 20 // bytes of POSIX shared memory, and of System V shared memory
