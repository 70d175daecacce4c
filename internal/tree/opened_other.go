//go:build !unix || portable

package tree

import "os"

// Opened is a regular file open for reading, as it was when it was opened.
type Opened struct {
	*os.File
	size int64
}

// OpenedFile is a file that the caller had open; Close closes it.
func OpenedFile(f *os.File, size int64) Opened { return Opened{f, size} }

// openPlain opens what is called path, by its last name, and says what it is.
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

// Size in bytes. A file of the kernel's may hold more.
func (o *Opened) Size() int64 { return o.size }

// Shrunk says that the file has become shorter since it was opened.
func (o *Opened) Shrunk() bool {
	at, err := o.Stat()
	return err == nil && at.Size() < o.size
}
