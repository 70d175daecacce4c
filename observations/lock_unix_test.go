//go:build linux || darwin

package observations

import (
	"syscall"
	"testing"
)

// A process that is being started has all files of its parent until it runs its own program: a lock that was let go is free all the same.
func TestReleasedLockIsFree(t *testing.T) {
	s := open(t, Options{})
	free := func(letGo func(*file)) bool {
		t.Helper()
		f, err := s.disk.open(quotaName, true)
		must(t, err)
		if ok, err := f.lock(true); err != nil || !ok {
			t.Fatal(ok, err)
		}
		child, err := syscall.Dup(int(f.Fd()))
		must(t, err)
		defer func() { _ = syscall.Close(child) }()
		letGo(f)
		again, err := s.disk.open(quotaName, true)
		must(t, err)
		defer again.release()
		ok, err := again.lock(true)
		must(t, err)
		return ok
	}
	if !free((*file).release) {
		t.Error("it is locked")
	}
	if free(func(f *file) { _ = f.File.Close() }) {
		t.Error("control: it is free where it was only closed")
	}
}
