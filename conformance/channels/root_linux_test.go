package channels

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// clean is a root directory of its own for a program, with an empty home, /home/user, and files to search, /data. Of
// the system it has what all have: /proc and /dev/null.
type clean struct {
	dir      string
	env      []string // HOME and PATH by default
	user     string   // USER:GROUP in numbers; the user of this process by default
	writable string   // the only directory that can be written; by default all can
}

// newClean returns a root with files of a channel, by their paths in it.
func newClean(t testing.TB, files []entry) clean {
	t.Helper()
	c := clean{dir: t.TempDir(), env: []string{"HOME=/home/user", "PATH=/usr/bin"}}
	unpack(t, c.dir, files)
	for _, dir := range []string{"proc", "dev", "home/user", "data"} {
		expect.Must(t, os.MkdirAll(filepath.Join(c.dir, dir), 0o755))
	}
	expect.Must(t, os.WriteFile(filepath.Join(c.dir, "dev/null"), nil, 0o600)) // where it will be mounted
	writeLines(t, filepath.Join(c.dir, "data"))
	return c
}

// enter is run by a shell in a mount namespace.
const enter = `set -e
mount=$1 chroot=$2 root=$3 writable=$4
shift 4
$mount --bind "$root" "$root"
$mount --rbind /proc "$root/proc"
$mount --bind /dev/null "$root/dev/null"
if [ -n "$writable" ]; then
	$mount --bind "$root$writable" "$root$writable"
	$mount -o remount,bind,ro "$root"
fi
exec $chroot "$@"
`

// command returns a command that runs a program in the root: as root in a mount namespace, as others in one of users
// too, where they cannot become another user.
func (c clean) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	var tools [4]string
	for i, name := range []string{"unshare", "mount", "chroot", "sh"} {
		tools[i] = expect.Value(exec.LookPath(name))(t)
	}
	flags := "-m"
	if os.Geteuid() != 0 {
		flags, c.user = "-rm", ""
	}
	if out, err := exec.Command(tools[0], flags, "true").CombinedOutput(); err != nil {
		t.Skipf("no root directory of its own: unshare %s: %v, %s", flags, err, out)
	}
	words := []string{flags, tools[3], "-c", enter, "enter", tools[1], tools[2], c.dir, c.writable}
	if c.user != "" {
		words = append(words, "--userspec="+c.user)
	}
	cmd := exec.Command(tools[0], append(append(words, c.dir), args...)...)
	cmd.Env = c.env
	return cmd
}

// run returns what a program prints in the root, and its exit code.
func (c clean) run(t testing.TB, args ...string) (out string, code int) {
	t.Helper()
	text, err := c.command(t, args...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(text), exit.ExitCode()
	}
	expect.Must(t, err, text)
	return string(text), 0
}

// entry is a file of an archive.
type entry struct {
	tar.Header
	text []byte
}

// readTar returns the files of a tar archive.
func readTar(t testing.TB, r io.Reader) (files []entry) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		expect.Must(t, err)
		files = append(files, entry{*h, expect.Value(io.ReadAll(archive))(t, h.Name)})
	}
}

// readArchive returns the files of a compressed tar archive.
func readArchive(t testing.TB, path string) []entry {
	t.Helper()
	return readTar(t, bytes.NewReader(gunzip(t, read(t, path))))
}

// gunzip returns an uncompressed text.
func gunzip(t testing.TB, text []byte) []byte {
	t.Helper()
	z := expect.Value(gzip.NewReader(bytes.NewReader(text)))(t)
	return expect.Value(io.ReadAll(z))(t)
}

// unpack writes files below a directory, with their modes, and with their owners where this process may.
func unpack(t testing.TB, dir string, files []entry) {
	t.Helper()
	root := expect.Value(os.OpenRoot(dir))(t)
	t.Cleanup(func() { expect.OK(t, root.Close()) })
	for _, f := range files {
		name := strings.Trim(strings.TrimPrefix(f.Name, "."), "/")
		if name == "" {
			continue
		}
		expect.Must(t, root.MkdirAll(filepath.Dir(name), 0o755))
		switch f.Typeflag {
		case tar.TypeDir:
			if err := root.Mkdir(name, 0o755); !errors.Is(err, fs.ErrExist) {
				expect.Must(t, err)
			}
		case tar.TypeReg:
			expect.Must(t, root.WriteFile(name, f.text, 0o600))
		default:
			t.Fatalf("%s is no file", f.Name)
		}
		if os.Geteuid() == 0 {
			expect.Must(t, root.Chown(name, f.Uid, f.Gid))
		}
		expect.Must(t, root.Chmod(name, f.FileInfo().Mode()&^fs.ModeType))
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	return expect.Value(os.ReadFile(path))(t)
}

// all returns the files of a directory that match a pattern.
func all(t testing.TB, dir, pattern string) []string {
	t.Helper()
	return expect.Value(filepath.Glob(filepath.Join(dir, pattern)))(t)
}

// one returns the only file of a directory that matches a pattern; the test is skipped where a small release lacks it.
func one(t testing.TB, dir, pattern string) string {
	t.Helper()
	found := all(t, dir, pattern)
	if len(found) == 0 && os.Getenv("CHANNELS_DIST") == "" {
		t.Skipf("a small release has no %s: see CHANNELS_DIST", pattern)
	}
	if len(found) != 1 {
		t.Fatalf("%d files %s: %q", len(found), pattern, found)
	}
	return found[0]
}
