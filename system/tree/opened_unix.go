//go:build unix && !portable

package tree

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Opened is a regular file open for reading, with its size when it was opened. It is an *os.File or a bare descriptor:
// creating an os.File takes as long as reading a small file.
type Opened struct {
	file *os.File // used if not nil
	fd   int      // used if file is nil
	open bool     // fd is open
	size int64
	path string
}

// openedFile wraps a file that the caller opened; Close closes it.
func openedFile(f *os.File, size int64) Opened { return Opened{file: f, size: size} }

// openPlain opens a file by the base name of path, and returns its identity and whether it is regular.
func (d folder) openPlain(path string) (o Opened, id ident, regular bool, err error) {
	fd, err := d.openat(nameOf(path), openFlags)
	if err != nil {
		return o, id, false, err
	}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		_ = unix.Close(fd)
		return o, id, false, err
	}
	regular = uint32(s.Mode)&unix.S_IFMT == unix.S_IFREG //nolint:unconvert // darwin's Mode is a uint16
	return Opened{fd: fd, open: true, size: s.Size, path: path}, statIdent(&s), regular, nil
}

// maxRead is the largest single read: some systems refuse more than 2 GiB.
const maxRead = 1 << 30

// Size returns the size in bytes. A kernel file may hold more.
func (o *Opened) Size() int64 { return o.size }

// Shrunk reports whether the file is shorter than when it was opened.
func (o *Opened) Shrunk() bool {
	if o.file != nil {
		at, err := o.file.Stat()
		return err == nil && at.Size() < o.size
	}
	var s unix.Stat_t
	return o.open && unix.Fstat(o.fd, &s) == nil && s.Size < o.size
}

func (o *Opened) Read(b []byte) (int, error) {
	if o.file != nil {
		return o.file.Read(b)
	}
	return o.read(b, func(b []byte) (int, error) { return unix.Read(o.fd, b) })
}

// ReadAt implements [io.ReaderAt].
func (o *Opened) ReadAt(b []byte, at int64) (n int, err error) {
	if o.file != nil {
		return o.file.ReadAt(b, at)
	}
	for n < len(b) && err == nil {
		var m int
		m, err = o.read(b[n:], func(b []byte) (int, error) { return unix.Pread(o.fd, b, at+int64(n)) })
		n += m
	}
	return n, err
}

// read calls the system once, and formats errors with the path like an os.File.
func (o *Opened) read(b []byte, from func([]byte) (int, error)) (n int, err error) {
	switch {
	case !o.open:
		return 0, os.ErrClosed
	case len(b) == 0:
		return 0, nil
	}
	for n, err = from(b[:min(len(b), maxRead)]); errors.Is(err, unix.EINTR); {
		n, err = from(b[:min(len(b), maxRead)])
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("read %s: %w", clip(o.path), err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Control runs f with the descriptor, as [syscall.RawConn] does. It must not run concurrently with Close.
func (o *Opened) Control(f func(fd uintptr)) error {
	switch {
	case o.file != nil:
		conn, err := o.file.SyscallConn()
		if err != nil {
			return err
		}
		return conn.Control(f)
	case !o.open:
		return os.ErrClosed
	}
	f(uintptr(o.fd))
	return nil
}

// Close closes the file.
func (o *Opened) Close() error {
	switch {
	case o.file != nil:
		return o.file.Close()
	case !o.open:
		return os.ErrClosed
	}
	o.open = false
	return unix.Close(o.fd)
}
