package storefs

import (
	"math"
	"os"

	"golang.org/x/sys/windows"
)

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
