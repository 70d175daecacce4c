//go:build !portable

package tree

import (
	"bytes"
	"encoding/binary"
	"io"

	"golang.org/x/sys/unix"
)

// A record of getdents64: inode (8 bytes), offset (8), length (2), type (1), then the name, ended by a NUL.
const (
	direntLen  = 16
	direntType = 18
	direntName = 19
)

// read takes the names of dir, and their types where the file system tells them.
func (w *walker) read(dir folder, list *listing) error {
	if w.buf == nil {
		w.buf = make([]byte, 64<<10)
	}
	if list.after != nil { // they are had again
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
			if w.suspect(binary.NativeEndian.Uint64(rec)) {
				k = isUnknown // to be looked at itself
			}
			list.take(w.ctx, name, k)
			rec = rec[size:]
		}
	}
}

// suspect says that an inode may be a denied one: which file system it is on, the directory does not say.
func (w *walker) suspect(ino uint64) bool {
	for i := range w.denied {
		if w.denied[i].ino == ino {
			return true
		}
	}
	return false
}

func direntKind(t byte) kind {
	switch t {
	case unix.DT_UNKNOWN:
		return isUnknown
	case unix.DT_REG:
		return isFile
	case unix.DT_DIR:
		return isDir
	case unix.DT_LNK:
		return isLink
	}
	return isOther
}
