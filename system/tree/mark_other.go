//go:build !unix || portable

package tree

import "io/fs"

func (i info) mark() Mark { return markOf(i.FileInfo) }

func markOf(at fs.FileInfo) Mark {
	return Mark{Size: at.Size(), Modified: at.ModTime().UnixNano(), Disk: at.Size()}
}
