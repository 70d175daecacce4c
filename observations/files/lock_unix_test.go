//go:build linux || darwin

package files_test

import (
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// A process that is being started has all files of its parent until it runs its own program: a lock that was let go
// is free all the same.
func TestReleasedLockIsFree(t *testing.T) {
	s := open(t, Options{})
	free := func(letGo func(*storefs.File)) bool {
		t.Helper()
		f, err := s.Disk().Open(files.QuotaName, true)
		must(t, err)
		if ok, err := f.TryLock(true); err != nil || !ok {
			t.Fatal(ok, err)
		}
		child, err := syscall.Dup(int(f.Fd()))
		must(t, err)
		defer func() { _ = syscall.Close(child) }()
		letGo(f)
		again, err := s.Disk().Open(files.QuotaName, true)
		must(t, err)
		defer again.UnlockAndClose()
		ok, err := again.TryLock(true)
		must(t, err)
		return ok
	}
	if !free((*storefs.File).UnlockAndClose) {
		t.Error("it is locked")
	}
	if free(func(f *storefs.File) { _ = f.File.Close() }) {
		t.Error("control: it is free where it was only closed")
	}
}
