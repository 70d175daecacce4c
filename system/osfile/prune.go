package osfile

import (
	"io/fs"
	"os"
	"slices"
	"time"
)

// Prune removes the files of a directory that did not change for maxAge, and the least recently changed ones over
// maxSize bytes. It does so once an hour; the time of the file "pruned" says when it last did.
func Prune(dir *os.Root, maxAge time.Duration, maxSize int64) {
	const stamp = "pruned"
	if at, err := dir.Stat(stamp); err == nil && time.Since(at.ModTime()).Abs() < time.Hour {
		return
	}
	_ = ReplaceIn(dir, stamp, "tmp-"+stamp, nil)
	list, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return
	}
	var all []fs.FileInfo
	for _, e := range list {
		if at, err := e.Info(); err == nil && e.Name() != stamp {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var size int64
	for _, at := range all {
		if size += at.Size(); size > maxSize || time.Since(at.ModTime()) > maxAge {
			_ = dir.Remove(at.Name())
		}
	}
}
