package osfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrTooLong is returned by ReadIn for a file over the limit.
var ErrTooLong = errors.New("it is too long")

// ReadIn reads a regular file of at most limit bytes in a directory. It never waits for the writer of a FIFO.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|Nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refused(name, ErrNotRegular)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, refused(name, ErrTooLong)
	}
	return b, err
}

// ReplaceIn writes a file of a directory, mode 0600, by renaming another one, whose name only one writer may use at a
// time.
func ReplaceIn(root *os.Root, name, temporary string, b []byte) error {
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}
