package httpserver

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestTokenFIFO names a FIFO that nobody writes to, which must not keep the server from telling so.
func TestTokenFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	expect.Must(t, syscall.Mkfifo(path, 0o600))
	read := make(chan error, 1)
	go func() {
		_, err := ReadTokens(path)
		read <- err
	}()
	select {
	case err := <-read:
		expect.Fails(t, err, "not a regular file")
	case <-time.After(5 * time.Minute):
		t.Error("it waits for a writer")
	}
}
