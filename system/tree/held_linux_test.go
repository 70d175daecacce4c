package tree

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"golang.org/x/sys/unix"
)

// A file is checked again when it is opened: nothing outside, denied or special is opened.
func TestHeldFilesChangedMeanwhile(t *testing.T) {
	parent := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	dir, token := filepath.Join(parent, "root"), filepath.Join(parent, "token")
	plant(t, parent, "outside/f", "token", "new")
	plant(t, dir, "gone", "link", "fifo", "denied", "renewed", "swapped/f", "kept")
	for _, name := range []string{"outside/f", "token", "new"} {
		expect.Must(t, os.WriteFile(filepath.Join(parent, name), []byte(secret), 0o600))
	}
	before := descriptors(t)
	r := open(t, dir, token)
	files := map[string]*Held{}
	held(t, r, func(e Entry) { files[e.Path] = e.In })

	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"gone", "link", "fifo", "denied", "renewed"} {
		expect.Must(t, os.Remove(in(name)))
	}
	for _, err := range []error{
		os.Symlink("../outside/f", in("link")),
		unix.Mkfifo(in("fifo"), 0o600),
		os.Link(token, in("denied")),                   // the one that was there when the root was opened
		os.Rename(filepath.Join(parent, "new"), token), // a new one takes its name …
		os.Link(token, in("renewed")),                  // … and is denied too
		os.Rename(in("swapped"), in("away")),           // a directory is swapped for a link out
		os.Symlink("../outside", in("swapped")),
	} {
		expect.Must(t, err)
	}
	for name, want := range map[string]error{
		"gone": fs.ErrNotExist, "link": ErrOutside, "fifo": ErrNotFile, "denied": ErrDenied, "renewed": ErrDenied, "swapped/f": nil, "kept": nil,
	} {
		o, err := files[name].Open(name)
		expect.ErrorIs(t, err, want, name)
		if err == nil {
			if b, err := io.ReadAll(&o); err != nil || string(b) == secret || len(b) == 0 {
				t.Errorf("%s: %q, %v", name, b, err)
			}
			_ = o.Close()
		}
		files[name].Release()
	}
	// Control: opened by path, the same names lead to the secret.
	for _, name := range []string{"link", "denied", "renewed", "swapped/f"} {
		if b, err := os.ReadFile(in(name)); err != nil || string(b) != secret {
			t.Errorf("control %s: %q, %v", name, b, err)
		}
	}
	_ = r.Close()
	if left := descriptors(t) - before; left > 1 { // the runtime's poller may be one
		t.Errorf("%d descriptors left open", left)
	}
}
