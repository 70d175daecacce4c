//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package storefs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const nonblock = syscall.O_NONBLOCK

// tryLock uses flock(2). The lock belongs to the open file, so two open files of one process exclude each other too,
// and the kernel releases it when the process dies.
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

// unlock releases the lock even if a child process shares the open file.
func unlock(f *os.File) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) })
	}
}

func syncDirectory(d *os.File) error { return d.Sync() }

// ownerUID returns the user a file belongs to.
func ownerUID(info fs.FileInfo) (uid int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}

// writableByOthers reports whether users other than the owner may write.
func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// IsFull reports whether the disk, or the user's quota on it, is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsReadOnly reports whether writing is not permitted here.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
