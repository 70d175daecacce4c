//go:build unix

package records

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestRecordsArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	s := opened(t, t.TempDir())
	k := Key{Account, "local", "s"}
	expect.Must(t, s.Put(k, []byte("{}")))
	for path, want := range map[string]os.FileMode{filepath.Dir(s.Where(k)): 0o700, s.Where(k): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestPlantedNames puts links and FIFOs where the files are. No update may follow them or wait.
func TestPlantedNames(t *testing.T) {
	k := Key{Account, "local", "s"}
	for _, kind := range []string{"link", "fifo"} {
		for _, name := range []string{"s.json", "lock", "pruned"} {
			dir := t.TempDir()
			s := opened(t, dir)
			expect.Must(t, os.Mkdir(filepath.Join(dir, "accounts"), 0o700))
			path, outside := filepath.Join(dir, "accounts", name), filepath.Join(t.TempDir(), "outside")
			expect.Must(t, os.WriteFile(outside, []byte("outside"), 0o600))
			if kind == "link" {
				expect.Must(t, os.Symlink(outside, path))
			} else {
				expect.Must(t, syscall.Mkfifo(path, 0o600))
			}
			err := s.Update(k, func(old Record) ([]byte, error) {
				if string(old.Body) == "outside" {
					t.Errorf("%s at %s: it was followed", kind, name)
				}
				return []byte("new"), nil
			})
			if b, _ := os.ReadFile(outside); string(b) != "outside" {
				t.Errorf("%s at %s: a file outside was changed to %s", kind, name, b)
			}
			if r, again := s.Get(k); err == nil && string(r.Body) != "new" {
				t.Errorf("%s at %s: %q, %v, %v", kind, name, r.Body, err, again)
			}
		}
	}
}

func TestTheDirectoryIsNoLink(t *testing.T) {
	dir := t.TempDir()
	expect.Must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "accounts")))
	expect.Fails(t, opened(t, dir).Put(Key{Account, "local", "s"}, []byte("{}")), "", "a linked directory was used")
}
