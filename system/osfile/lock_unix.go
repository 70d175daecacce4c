//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package osfile

import (
	"errors"
	"os"
	"syscall"
)

// TryLock locks an open file if it is free, shared or exclusively (alone). It uses flock(2): the lock belongs to the
// open file, so two open files of one process exclude each other too, and the kernel releases it when the process dies.
func TryLock(f *os.File, alone bool) (bool, error) {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if alone {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	err := Control(f, func(fd int) error { return syscall.Flock(fd, how) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock even if a child process shares the open file.
func Unlock(f *os.File) {
	_ = Control(f, func(fd int) error { return syscall.Flock(fd, syscall.LOCK_UN) })
}
