//go:build unix && !portable

package tree

import (
	"io/fs"
	"syscall"
)

// blockSize is the unit of st_blocks.
const blockSize = 512

func (i info) mark() Mark {
	return Mark{Size: i.size, Modified: i.mod.UnixNano(), Changed: i.changed, Inode: i.id.ino, Disk: i.disk}
}

// markOf returns the mark of a file that package os described.
func markOf(at fs.FileInfo) Mark {
	m := Mark{Size: at.Size(), Modified: at.ModTime().UnixNano(), Disk: at.Size()}
	if s, ok := at.Sys().(*syscall.Stat_t); ok {
		m.Inode, m.Changed, m.Disk = s.Ino, changedOf(s), s.Blocks*blockSize
	}
	return m
}
