package conformance

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

var update = flag.Bool("update", false, "rewrite transcripts, tables and examples")

// binary builds the product once, with the flags of a release, and returns its path.
func binary(t testing.TB) string { return program(t, "mcp-funnel") }

// program builds one of the programs once, with the flags of a release, and returns its path.
func program(t testing.TB, name string) string {
	t.Helper()
	switch name {
	case "mcp-funnel":
		return built.Program(t, "cmd/mcp-funnel")
	case "fixture":
		return built.Program(t, "conformance/fixture")
	}
	return expect.Value(buildDrive())(t, "go build %s", name)
}

// drivesOnly skips a test under the race detector if the test only drives other programs: these are built without the
// detector, so it would find nothing and take longer.
func drivesOnly(t testing.TB) {
	t.Helper()
	if promise.UnderRace {
		t.Skip("it drives programs that are built without the race detector: tried by the run without it")
	}
}

// maxStripped is the maximum size of the stripped program in bytes: 3 % more than ARCHITECTURE.md says. 2.7 MB of it
// are the table of text/embed, without which nothing is found by meaning where no endpoint is.
const maxStripped = 54_500_000

// TestStrippedSize checks the size of the program as a release strips it.
func TestStrippedSize(t *testing.T) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("the limit is that of linux/amd64")
	}
	path := filepath.Join(t.TempDir(), "mcp-funnel")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s", "-o", path, "../cmd/mcp-funnel")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	expect.Must(t, err, string(out))
	if at := expect.Value(os.Stat(path))(t); at.Size() > maxStripped {
		t.Errorf("the stripped program has %d bytes, the limit is %d: make size says what takes them", at.Size(), maxStripped)
	}
}

// buildDir is the directory of the built programs; TestMain makes and removes it.
var buildDir string

// buildDrive compiles the client of the Go SDK, which is a test of a module of its own.
var buildDrive = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "drive")
	cmd := exec.CommandContext(context.Background(), "go", "test", "-c", "-o", path, "./drive")
	cmd.Dir, cmd.Env = "clients", append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

func TestMain(m *testing.M) {
	if played, code := play(); played {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "mcp-funnel-conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "6") // most of these tests wait for processes
	}
	code := built.Main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// environment returns an environment that hides the files and settings of the person who runs the tests.
func environment(t testing.TB) []string {
	t.Helper()
	home := t.TempDir()
	env := []string{
		"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"PATH=" + filepath.Dir(binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH"), "TZ=UTC", "LANG=C.UTF-8",
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOPROXY", "GOROOT"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// plainDir makes an empty directory whose path has, if possible, the same token count in every run and on every
// machine: the content of a receipt that names it depends on that count.
func plainDir(t testing.TB) string {
	t.Helper()
	for range 100 {
		dir := fmt.Sprintf("/tmp/mcp-funnel-conformance-%09d", rand.IntN(1e9))
		if os.Mkdir(dir, 0o700) != nil {
			continue // it belongs to another process, or the parent does not exist
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if dir, err := filepath.EvalSymlinks(dir); err == nil {
			return dir
		}
	}
	return t.TempDir()
}

// write makes a file and its parent directories.
func write(t testing.TB, path, text string) {
	t.Helper()
	expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.Must(t, os.WriteFile(path, []byte(text), 0o644))
}

// report shows the first faults of a proof as errors of its test.
func report(t testing.TB, faults []string) {
	t.Helper()
	for _, fault := range faults[:min(len(faults), 20)] {
		t.Error(fault)
	}
	if more := len(faults) - 20; more > 0 {
		t.Errorf("and %d more", more)
	}
}

// concurrently calls do for each item, n at a time.
func concurrently[T any](n int, items []T, do func(T)) {
	var all sync.WaitGroup
	gate := make(chan struct{}, n)
	for _, item := range items {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			do(item)
		})
	}
	all.Wait()
}

// lines splits a text for messages of tests.
func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
