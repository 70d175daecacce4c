package storefs

import (
	"errors"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// syncDirectory does nothing: Windows has no such call, and NTFS journals names.
func syncDirectory(*os.File) error { return nil }

// writableByOthers is always false: permissions on Windows are access lists, inherited from the user's profile.
func writableByOthers(fs.FileInfo) bool { return false }

// IsFull reports whether the disk is full.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// IsReadOnly reports whether writing is not permitted here.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, windows.ERROR_WRITE_PROTECT)
}

// freeBytes returns how many bytes this user may still write to the disk of dir.
func freeBytes(_ *os.File, dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(min(free, math.MaxInt64)), err
}
