package observations

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const nonblock = 0

// tryLock locks one byte far behind any content: Windows' locks are mandatory,
// and readers must be able to read what is locked.
func tryLock(f *os.File, alone bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// unlock: no other process has a handle of ours, and to close it frees its lock.
func unlock(*os.File) {}

// syncDirectory: Windows has no such call; NTFS journals its names.
func syncDirectory(*os.File) error { return nil }

func owner(fs.FileInfo) (uid int, known bool) { return 0, false }

// writable: rights are lists here, inherited from the user's profile.
func writable(fs.FileInfo) bool { return false }

func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, windows.ERROR_WRITE_PROTECT)
}
