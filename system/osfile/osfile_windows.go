package osfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// Nonblock is 0: opening a file never waits on Windows.
const Nonblock = 0

func openNoFollow(path string) (*os.File, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, refused(path, ErrLink)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		_ = f.Close()
		return nil, refused(path, errReplaced)
	}
	return f, nil
}

// OwnerUID knows no owner: files on Windows are protected by access lists.
func OwnerUID(fs.FileInfo) (uid int, known bool) { return 0, false }

// TryLock locks one byte far behind any content: locks are mandatory on Windows, and readers must be able to read a
// locked file.
func TryLock(f *os.File, alone bool) (bool, error) {
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

// Unlock does nothing: no other process shares our handle, and closing it releases the lock.
func Unlock(*os.File) {}
