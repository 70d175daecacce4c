package tree

import "io/fs"

// Mark tells versions of a file apart without reading it: a write changes the time of change, and a replacement the
// inode. Equal marks mean equal content, unless the clock of the machine was set back. On systems without inodes only
// size and time of modification are known.
type Mark struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"mtime"`           // nanoseconds since 1970
	Changed  int64  `json:"ctime,omitempty"` // of the inode; nanoseconds since 1970
	Inode    uint64 `json:"inode,omitempty"`
	Disk     int64  `json:"disk"` // bytes on the disk
}

// MarkOf returns the mark of a file that [Root.Stat] or [Root.Lstat] described.
func MarkOf(at fs.FileInfo) Mark {
	if in, ok := at.(info); ok {
		return in.mark()
	}
	return markOf(at)
}

// Why a walk skipped an entry; see [Options].Skipped.
const (
	SkippedHidden  = "hidden"
	SkippedIgnored = "ignored"
)
