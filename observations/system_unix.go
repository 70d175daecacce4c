//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package observations

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const nonblock = syscall.O_NONBLOCK

// tryLock takes flock(2): it belongs to the open file, so two files open in one
// process exclude each other too, and the kernel frees it at death.
func tryLock(f *os.File, alone bool) (bool, error) {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if alone {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var locked error
	err = conn.Control(func(fd uintptr) {
		for {
			locked = syscall.Flock(int(fd), how)
			if locked != syscall.EINTR {
				return
			}
		}
	})
	if err == nil {
		err = locked
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock frees what tryLock took, also where another has the open file too.
func unlock(f *os.File) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) })
	}
}

func syncDirectory(d *os.File) error { return d.Sync() }

// owner is the user a file belongs to.
func owner(info fs.FileInfo) (uid int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}

// writable says that others than the owner may write.
func writable(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// isFull says that the disk, or the user's share of it, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isReadOnly says that it may not be written here.
func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
