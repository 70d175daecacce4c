//go:build !portable

package tree

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"

	"golang.org/x/sys/unix"
)

// Layout of a getdents64 record: inode (8 bytes), offset (8), length (2), type (1), then the name, ended by a NUL.
const (
	direntLen  = 16
	direntType = 18
	direntName = 19
)

// read lists the names of dir, with their types if the file system reports them.
func (w *walker) read(dir folder, list *listing) error {
	if w.buf == nil {
		w.buf = make([]byte, 64<<10)
	}
	if list.doneUpTo != nil { // read it again from the start
		if _, err := unix.Seek(dir.fd, 0, io.SeekStart); err != nil {
			return err
		}
	}
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Getdents(dir.fd, w.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		for rec := w.buf[:n]; len(rec) > direntName; {
			size := int(binary.NativeEndian.Uint16(rec[direntLen:]))
			if size <= direntName || size > len(rec) {
				break
			}
			name := rec[direntName:size]
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			k := direntKind(rec[direntType])
			if w.maybeDenied(binary.NativeEndian.Uint64(rec)) {
				k = isUnknown // a stat decides later whether it is the denied file
			}
			list.insert(w.ctx, name, k)
			rec = rec[size:]
		}
	}
}

// maybeDenied reports whether an inode number is that of a denied file. The directory does not say on which file system
// it is.
func (w *walker) maybeDenied(ino uint64) bool {
	return slices.ContainsFunc(w.denied, func(id ident) bool { return id.ino == ino })
}

// direntKind converts the type of a record: that of st_mode without its 12 permission bits, or 0 if unknown.
func direntKind(t byte) kind {
	if t == unix.DT_UNKNOWN {
		return isUnknown
	}
	return kindOf(modeOf(uint32(t) << 12))
}
