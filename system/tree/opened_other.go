//go:build !unix || portable

package tree

import "os"

// Opened is a regular file open for reading, with its size when it was opened.
type Opened struct {
	*os.File
	size int64
}

// openedFile wraps a file that the caller opened; Close closes it.
func openedFile(f *os.File, size int64) Opened { return Opened{f, size} }

// openPlain opens a file by the base name of path, and returns its identity and whether it is regular.
func (d folder) openPlain(path string) (o Opened, id ident, regular bool, err error) {
	f, err := d.openFile(nameOf(path), openFlags)
	if err != nil {
		return o, id, false, err
	}
	at, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return o, id, false, err
	}
	return Opened{f, at.Size()}, identOf(at), at.Mode().IsRegular(), nil
}

// Size returns the size in bytes. A kernel file may hold more.
func (o *Opened) Size() int64 { return o.size }

// Shrunk reports whether the file is shorter than when it was opened.
func (o *Opened) Shrunk() bool {
	at, err := o.Stat()
	return err == nil && at.Size() < o.size
}
