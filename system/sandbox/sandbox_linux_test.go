//go:build amd64 || arm64

package sandbox_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Main(os.Args); ran {
		os.Exit(code)
	}
	if name := os.Getenv(probeKey); name != "" {
		os.Exit(runProbe(name, os.Args[1:]))
	}
	os.Exit(workertest.WithPlainBuild(m, sandbox.Use))
}

// runCommand runs a shell command and returns its status and what it wrote.
func runCommand(t testing.TB, s sandbox.Spec, command string) (sandbox.Status, string) {
	t.Helper()
	r, w, err := os.Pipe()
	expect.Must(t, err)
	defer r.Close() //nolint:errcheck // a test's pipe
	s.Args = []string{"/bin/sh", "-c", command}
	if s.Dir == "" {
		s.Dir = "/"
	}
	if s.Mode == "" {
		s.Mode = sandbox.Required
	}
	if s.Env == nil {
		s.Env = []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
	}
	start := sandbox.Start
	if s.Mode == withoutNamespaces {
		s.Mode, start = sandbox.BestEffort, sandbox.StartWithoutNamespaces
	}
	p, err := start(s, w, w)
	_ = w.Close()
	if lacks := (*sandbox.Unavailable)(nil); errors.As(err, &lacks) && lacks.Layer == "namespaces" {
		t.Skipf("this machine refuses namespaces: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	out := expect.Value(io.ReadAll(r))(t)
	status := expect.Value(p.Wait())(t)
	return status, string(out)
}

func TestRunsACommand(t *testing.T) {
	dir := t.TempDir()
	status, out := runCommand(t, sandbox.Spec{
		Mounts: []sandbox.Mount{{Source: dir, Target: dir, Write: true}}, Dir: dir,
	}, `pwd; echo hi > file; cat file; ls /; exit 3`)
	want := dir + "\nhi\n"
	if status.Exit != 3 || !strings.HasPrefix(out, want) || !strings.Contains(out, "tmp\n") {
		t.Fatalf("exit %d: %s", status.Exit, out)
	}
	if strings.Contains(out, "home\n") || strings.Contains(out, "root\n") {
		t.Errorf("more than was granted is visible: %s", out)
	}
}

// TestPlainSources checks that a source below a directory that a command has replaced by a link is not mounted. Without
// Plain it is.
func TestPlainSources(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	expect.Must(t, os.MkdirAll(outside+"/.git/hooks", 0o700))
	expect.Must(t, os.WriteFile(outside+"/.git/hooks/secret", []byte("a secret"), 0o600))
	expect.Must(t, os.Symlink(outside, root+"/a"))
	for _, plain := range []bool{true, false} {
		_, out := runCommand(t, sandbox.Spec{Mounts: []sandbox.Mount{
			{Source: root + "/a/.git/hooks", Target: "/home/hooks", Maybe: true, Plain: plain},
		}}, "cat /home/hooks/secret")
		if strings.Contains(out, "a secret") == plain {
			t.Errorf("plain %t: %s", plain, out)
		}
	}
}
