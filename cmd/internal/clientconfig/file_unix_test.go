//go:build unix

package clientconfig

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// Written are the new bytes with the old mode, beside the old bytes; removing leaves only those.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	c, text := ByName("cursor"), "{\n  \"a\": 1\n}\n"
	expect.Must(t, os.WriteFile(path, []byte(text), 0o640))
	expect.Must(t, os.Chmod(path, 0o640))
	change := func(ch Change) string {
		t.Helper()
		f := expect.Value(Open(path))(t)
		defer f.Close()
		p := expect.Value(c.Plan(f.Content, f.Backup, ch))(t)
		return expect.Value(f.Write(p))(t)
	}
	backup := change(Change{Self: self, Server: true})
	expect.Equal(t, string(expect.Value(os.ReadFile(backup))(t)), text, "backup %s", backup)
	change(Change{Self: "/moved/mcp-funnel", Server: true})
	expect.Equal(t, string(expect.Value(os.ReadFile(backup))(t)), text, "a later backup")
	change(Change{Self: self, Server: true, Remove: true})
	b, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(b) != text || info.Mode() != 0o640 {
		t.Errorf("%q, %v, %v", b, info, err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("left: %v", all)
	}
	expect.Must(t, os.Remove(path))
	change(Change{Self: self, Server: true})
	change(Change{Self: self, Server: true, Remove: true})
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 0 {
		t.Errorf("left of a new file: %v", all)
	}
}

// A file that another program writes meanwhile keeps what that wrote.
func TestWrittenMeanwhile(t *testing.T) {
	for _, before := range []string{"{}", ""} {
		path := filepath.Join(t.TempDir(), "mcp.json")
		if before != "" {
			expect.Must(t, os.WriteFile(path, []byte(before), 0o600))
		}
		f := expect.Value(Open(path))(t)
		defer f.Close()
		p := expect.Value(ByName("cursor").Plan(f.Content, f.Backup, Change{Self: self, Server: true}))(t)
		expect.Must(t, os.WriteFile(path, []byte(`{"by":"another"}`), 0o600))
		expect.Fails(t, expect.Err(f.Write(p)), "changed by another program", "%q", before)
		if b, err := os.ReadFile(path); err != nil || string(b) != `{"by":"another"}` {
			t.Errorf("%q, %v", b, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	expect.Must(t, os.WriteFile(in("real"), []byte("{}"), 0o600))
	expect.Must(t, os.Symlink("real", in("link")))
	expect.Must(t, os.Symlink("none", in("dangling")))
	expect.Must(t, os.WriteFile(in("readonly"), []byte("{}"), 0o400))
	expect.Must(t, os.Mkdir(in("dir"), 0o700))
	expect.Must(t, syscall.Mkfifo(in("fifo"), 0o600))
	expect.Must(t, os.WriteFile(in("big"), nil, 0o600))
	expect.Must(t, os.Truncate(in("big"), maxFile+1))
	for name, want := range map[string]string{
		"link": "is a link; --file names the file itself: " + in("real"), "dangling": "is a link", "readonly": "read-only",
		"dir": "not a regular file", "fifo": "not a regular file", "big": "over 64 MiB", "no/no/file": "no such file",
	} {
		if f, err := Open(in(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				f.Close()
			}
		}
	}
}
