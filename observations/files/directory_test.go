package files_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

func TestRefusedDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"group may write": {func(t *testing.T, dir string) { mkdir(t, dir, 0o770) }, "chmod go-w"},
		"all may write":   {func(t *testing.T, dir string) { mkdir(t, dir, 0o777) }, "chmod go-w"},
		"observations writable": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			mkdir(t, filepath.Join(dir, "observations"), 0o777)
		}, "chmod go-w"},
		"observations a link": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "observations")); err != nil {
				t.Skip("links cannot be made here")
			}
		}, "move it away"},
		"tmp a file": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			must(t, os.WriteFile(filepath.Join(dir, "tmp"), nil, 0o600))
		}, "move it away"},
		"a file":  {func(t *testing.T, dir string) { must(t, os.WriteFile(dir, nil, 0o600)) }, "--store"},
		"foreign": {func(t *testing.T, dir string) { mkdir(t, dir, 0o700); chown(t, dir, 12345) }, "chown it"},
		"tmp foreign": {func(t *testing.T, dir string) {
			mkdir(t, dir, 0o700)
			mkdir(t, filepath.Join(dir, "tmp"), 0o700)
			chown(t, filepath.Join(dir, "tmp"), 12345)
		}, "chown it"},
		"a stranger's link": {func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), dir); err != nil {
				t.Skip("links cannot be made here")
			}
			chown(t, dir, 12345)
		}, "--store"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			c.make(t, dir)
			s, err := OpenStore(Options{Dir: dir})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "open store ") {
				t.Errorf("the error does not say what to do (%q): %v", c.want, err)
			}
		})
	}
	t.Run("control: a plain one", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		mkdir(t, dir, 0o755)
		link := dir + "-link"
		if os.Symlink(dir, link) != nil {
			link = dir
		}
		open(t, Options{Dir: link})
	})
}

func mkdir(t *testing.T, dir string, mode fs.FileMode) {
	t.Helper()
	must(t, os.Mkdir(dir, 0o700))
	if err := os.Chmod(dir, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string, uid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: a directory cannot be given to another user")
	}
	must(t, os.Lchown(path, uid, -1))
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	t.Setenv("XDG_STATE_HOME", "")
	if got, err := files.DefaultDir(); err != nil || filepath.ToSlash(got) != "/home/ann/.local/state/mcp-funnel" {
		t.Errorf("files.DefaultDir() = %q, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	if got, _ := files.DefaultDir(); filepath.ToSlash(got) != "/home/ann/.local/state/mcp-funnel" {
		t.Errorf("a relative XDG_STATE_HOME gives %q", got)
	}
	t.Setenv("XDG_STATE_HOME", "/var/state")
	if got, _ := files.DefaultDir(); filepath.ToSlash(got) != "/var/state/mcp-funnel" {
		t.Errorf("XDG_STATE_HOME=/var/state gives %q", got)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := files.DefaultDir(); err == nil || !strings.Contains(err.Error(), "--store") {
		t.Errorf("no home: %v", err)
	}
}
