package osfile

import (
	"errors"
	"os"
	"time"
)

// ErrBusy is why LockIn gives up.
var ErrBusy = errors.New("another process holds the lock")

// LockIn locks a file of a directory, and creates it if it is missing. It polls until its pauses add up to wait; then
// the error is [ErrBusy]. The caller must Unlock and close the file.
func LockIn(root *os.Root, name string, wait time.Duration) (*os.File, error) {
	waited := time.Duration(0)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|Nonblock, 0o600)
		if err != nil {
			return nil, err
		}
		ok, err := TryLock(f, true)
		if ok && isLinked(root, name, f) { // else it was deleted by hand meanwhile
			return f, nil
		}
		Unlock(f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		if waited >= wait {
			return nil, ErrBusy
		}
		time.Sleep(pause)
		waited += pause
	}
}

// isLinked reports whether an open file still exists under its name.
func isLinked(root *os.Root, name string, f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := root.Lstat(name)
	return err == nil && os.SameFile(open, named)
}
