package httpserver

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTokenFIFO names a FIFO that nobody writes to, which must not keep the server from telling so.
func TestTokenFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := ReadTokens(path)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("it waits for a writer")
	}
}
