//go:build unix

package usage

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAccountsArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	s, _ := opened(t)
	must(t, s.show("local", "s", 1))
	for path, want := range map[string]os.FileMode{s.dir: 0o700, filepath.Join(s.dir, accountName("local", "s")): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestPlantedNames puts links and FIFOs where the files are. No update may follow them or wait.
func TestPlantedNames(t *testing.T) {
	for _, kind := range []string{"link", "fifo"} {
		for _, name := range []string{accountName("local", "s"), tmpName} {
			s, _ := opened(t)
			must(t, os.Mkdir(s.dir, 0o700))
			path, outside := filepath.Join(s.dir, name), filepath.Join(t.TempDir(), "outside")
			must(t, os.WriteFile(outside, []byte(`{"shown":99}`), 0o600))
			if kind == "link" {
				must(t, os.Symlink(outside, path))
			} else {
				must(t, syscall.Mkfifo(path, 0o600))
			}
			err := s.show("local", "s", 1)
			if b, _ := os.ReadFile(outside); string(b) != `{"shown":99}` {
				t.Errorf("%s at %s: a file outside was changed to %s", kind, name, b)
			}
			if a, again := s.Read("local", "s"); a.Shown == 100 || err == nil && a.Shown != 1 {
				t.Errorf("%s at %s: %+v, %v, %v", kind, name, a, err, again)
			}
		}
	}
}

func TestTheDirectoryIsNoLink(t *testing.T) {
	s, _ := opened(t)
	must(t, os.Symlink(t.TempDir(), s.dir))
	if err := s.show("local", "s", 1); err == nil {
		t.Error("a linked directory was used")
	}
}
