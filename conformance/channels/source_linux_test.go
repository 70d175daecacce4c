package channels

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// command runs a program in a directory with more environment, and returns what it prints.
func command(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	expect.Must(t, err, "%q: %s", args, &errs)
	return strings.TrimSpace(string(out))
}

// checkout returns the clone of the last commit.
func checkout(t testing.TB) string {
	t.Helper()
	needsCheckout(t)
	return expect.Value(clone())(t)
}

// program returns a root that has only a program, at the path that go install gives it.
func program(t testing.TB, path string) clean {
	t.Helper()
	return newClean(t, []entry{{
		tar.Header{Name: "home/user/go/bin/mcp-funnel", Mode: 0o755, Typeflag: tar.TypeReg}, read(t, path),
	}})
}

// TestGoInstall installs the last commit as v0.1.0 from a module proxy on disk, into an empty module cache: that of the
// user must not learn of this version.
func TestGoInstall(t *testing.T) {
	if !promise.Full() && os.Getenv("CHANNELS_DIST") == "" {
		t.Skip("it compiles all packages again, which takes a minute: only with SAFETY=full or CHANNELS_DIST")
	}
	dir, proxy, cache := checkout(t), t.TempDir(), t.TempDir()
	version := module.Version{Path: "github.com/mcp-funnel/mcp-funnel", Version: "v0.1.0"}
	at := filepath.Join(proxy, version.Path, "@v")
	expect.Must(t, os.MkdirAll(at, 0o755))
	archive := expect.Value(os.Create(filepath.Join(at, "v0.1.0.zip")))(t)
	expect.Must(t, modzip.CreateFromVCS(archive, version, dir, "HEAD", ""))
	expect.Must(t, archive.Close())
	for name, text := range map[string][]byte{
		"v0.1.0.info": fmt.Appendf(nil, `{"Version":"v0.1.0","Time":%q}`, time.Now().UTC().Format(time.RFC3339)),
		"v0.1.0.mod":  read(t, filepath.Join(dir, "go.mod")),
		"list":        []byte("v0.1.0\n"),
	} {
		expect.Must(t, os.WriteFile(filepath.Join(at, name), text, 0o600))
	}
	env := []string{
		"GOPROXY=file://" + proxy + ",file://" + command(t, dir, nil, "go", "env", "GOMODCACHE") + "/cache/download",
		// -trimpath only so that what is compiled for other tests is used.
		"GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off", "GOMODCACHE=" + cache, "GOBIN=" + proxy, "CGO_ENABLED=0",
		"GOWORK=off",
	}
	command(t, proxy, env, "go", "install", version.Path+"/cmd/mcp-funnel@"+version.Version)
	c := program(t, filepath.Join(proxy, "mcp-funnel"))
	said, _ := c.run(t, "/home/user/go/bin/mcp-funnel", "version")
	expect.Has(t, said, "mcp-funnel v0.1.0 (go")
	firstReceipt(t, c.command(t, "/home/user/go/bin/mcp-funnel", "/data"), "/data")
	said, _ = c.run(t, "/home/user/go/bin/mcp-funnel", "doctor", "--root", "/data")
	expect.Has(t, said, "by go install; to update: go install github.com/mcp-funnel/mcp-funnel/cmd/mcp-funnel@latest")
}

// TestSourceArchive builds what git archive writes, where no git checkout is.
func TestSourceArchive(t *testing.T) {
	dir, source := checkout(t), t.TempDir()
	want, err := exec.Command("git", "-C", dir, "describe", "--tags").Output()
	if err != nil { // no tag
		commit := command(t, dir, []string{"TZ=UTC"},
			"git", "log", "-1", "--date=format-local:%Y%m%d%H%M%S", "--format=%cd-%H")
		want = []byte("v0.0.0-" + commit[:14+1+12]) // time and hash
	}
	unpackSource(t, source, expect.Value(exec.Command("git", "-C", dir, "archive", "HEAD").Output())(t))
	command(t, source, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", "mcp-funnel", "./cmd/mcp-funnel")
	c := program(t, filepath.Join(source, "mcp-funnel"))
	said, _ := c.run(t, "/home/user/go/bin/mcp-funnel", "--version")
	expect.Has(t, said, "mcp-funnel "+strings.TrimSpace(string(want))+" (go")
	firstReceipt(t, c.command(t, "/home/user/go/bin/mcp-funnel", "/data"), "/data")
}

func unpackSource(t *testing.T, dir string, archive []byte) {
	t.Helper()
	var files []entry
	for _, f := range readTar(t, bytes.NewReader(archive)) {
		if f.Typeflag != tar.TypeXGlobalHeader && f.Typeflag != tar.TypeSymlink {
			files = append(files, f)
		}
	}
	unpack(t, dir, files)
}

// TestFileNames checks that every tracked file can be checked out on Windows and be part of a module.
func TestFileNames(t *testing.T) {
	names := strings.Split(strings.Trim(command(t, checkout(t), nil, "git", "ls-files", "-z"), "\x00"), "\x00")
	if len(names) < 500 {
		t.Fatalf("git lists %d files", len(names))
	}
	for _, name := range names {
		expect.OK(t, module.CheckFilePath(name))
	}
	expect.Fails(t, module.CheckFilePath("testdata/nul"), "disallowed")
}
