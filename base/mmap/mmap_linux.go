package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

// locals are the file systems whose pages come from this machine's memory or disks (statfs(2)).
var locals = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC:      true, // ext2 and ext3 too
	unix.XFS_SUPER_MAGIC:       true,
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.F2FS_SUPER_MAGIC:      true,
	unix.TMPFS_MAGIC:           true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
}

// local reports whether a file is on one of these file systems.
func local(o opened) (is bool) {
	err := o.Control(func(fd uintptr) {
		var s unix.Statfs_t
		is = unix.Fstatfs(int(fd), &s) == nil && locals[uint32(s.Type)]
	})
	return is && err == nil
}

// mapRange maps the pages of n bytes from offset from, and loads them, so that look does not wait for the disk. It
// returns all mapped bytes and the n bytes as view; nil if a page is beyond the end of the file, or before Linux 5.14.
func (f *File) mapRange(from int64, n int) (all, view []byte) {
	skip := int(from % int64(os.Getpagesize()))
	err := f.open.Control(func(fd uintptr) {
		b, err := unix.Mmap(int(fd), from-int64(skip), skip+n, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return
		}
		if unix.Madvise(b, unix.MADV_POPULATE_READ) != nil {
			unmap(b)
			return
		}
		all, view = b, b[skip:]
	})
	if err != nil && all != nil {
		unmap(all)
		return nil, nil
	}
	return all, view
}

func unmap(b []byte) { _ = unix.Munmap(b) }
