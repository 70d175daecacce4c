package conformance

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// maxKeep is what keeping may take however much is kept.
const maxKeep = 96 << 20

// TestKeepIsBounded keeps a gigabyte (64 MiB with -short) of log lines through the binary.
func TestKeepIsBounded(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	line := []byte("2026-11-20T12:00:00.000Z INFO  request served method=GET path=/v1/items/4711 status=200 took=12ms\n")
	chunk := bytes.Repeat(line, 1000)
	cmd := exec.CommandContext(t.Context(), binary(t), "--max-observation", "2GiB", "--quota", "3GiB", "--min-free", "0", "keep")
	cmd.Env = environment(t)
	cmd.Stdin = io.LimitReader(endless(chunk), size)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "LARGE OUTPUT DETECTED: kept whole as obs:") {
		t.Fatalf("no receipt:\n%s", out.String())
	}
	peak := peakOf(cmd.ProcessState)
	if peak > maxKeep {
		t.Errorf("keeping %d MiB took %d MiB of memory, at most %d", size>>20, peak>>20, maxKeep>>20)
	}
	t.Logf("%d MiB kept with %d MiB of memory", size>>20, peak>>20)
}

// endless repeats a chunk.
type endless []byte

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e[:min(len(e), len(p)-n)])
	}
	return n, nil
}

// peakOf is the most memory a process held, in bytes.
func peakOf(s *os.ProcessState) int64 { return s.SysUsage().(*syscall.Rusage).Maxrss << 10 }

// TestSpecialFiles: what is no regular file inside a root, and what lies outside
// it, gets one clear error from every tool, at once.
func TestSpecialFiles(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "ok.txt"), "a secret word\n")
	write(filepath.Join(outside, "secret.txt"), "a secret word\n")
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Skipf("no FIFO can be made here: %v", err)
	}
	for name, target := range map[string]string{
		"out": filepath.Join(outside, "secret.txt"), "up": "../" + filepath.Base(outside) + "/secret.txt", "outdir": outside, "zero": "/dev/zero", "loop": "loop", "proc": "/proc/self/environ",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := environment(t)
	calls := map[string]func(name string) []string{
		"read":   func(n string) []string { return []string{"read", "path=" + n} },
		"search": func(n string) []string { return []string{"search", "pattern=secret", "path=" + n} },
		"grep":   func(n string) []string { return []string{"grep", "pattern=secret", "source=" + n} },
		"jq":     func(n string) []string { return []string{"jq", "filter=.", "text=true", "source=" + n} },
		"slice":  func(n string) []string { return []string{"slice", "lines=1", "source=" + n} },
		"find":   func(n string) []string { return []string{"find", "path=" + n} },
	}
	bad := []string{"fifo", "out", "up", "outdir/secret.txt", "zero", "loop", "proc", "missing", "ok.txt/", "../" + filepath.Base(outside) + "/secret.txt", filepath.Join(outside, "secret.txt"), "/dev/zero", "/proc/self/environ", strings.Repeat("x", 5000)}
	for tool, words := range calls {
		names := bad
		if tool == "find" { // it names what stands there, and opens nothing
			names = slices.DeleteFunc(slices.Clone(bad), func(n string) bool { return n == "fifo" })
		}
		if tool != "search" && tool != "find" { // these look into directories
			names = append([]string{"dir", "outdir"}, names...)
		}
		for _, name := range names {
			out, failed := callTool(t, env, root, words(name)...)
			if !failed || strings.Contains(out, "a secret word") || !strings.HasPrefix(out, "error: ") || strings.Count(out, "\n") > 1 || len(out) > 700 {
				t.Errorf("%s %.40s: failed=%t, %d bytes: %.300s", tool, name, failed, len(out), out)
			}
		}
		// The control: the same call answers on a file that is one.
		if out, failed := callTool(t, env, root, words("ok.txt")...); failed && tool != "find" {
			t.Errorf("%s ok.txt: %s", tool, out)
		}
	}
}

// callTool makes one call with the binary; none of these may take long.
func callTool(t *testing.T, env []string, root string, words ...string) (out string, failed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), append([]string{"--root", root, "--call-timeout", "10s", "call"}, words...)...)
	cmd.Env = env
	start := time.Now()
	b, err := cmd.Output()
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("%v hung: it took %s", words, took)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), err != nil
}

// TestLineOfAGigabyte: one line as long as a disk allows is searched, sliced and read in bounded memory.
func TestLineOfAGigabyte(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	root := t.TempDir()
	f, err := os.Create(filepath.Join(root, "line.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, part := range []struct {
		at   int64
		text string
	}{{0, strings.Repeat("begin ", 20_000)}, {size - 120_000, strings.Repeat("x", 119_990) + "the needle"}} {
		if _, err := f.WriteAt([]byte(part.text), part.at); err != nil {
			t.Fatal(err)
		}
	}
	env := environment(t)
	for _, words := range [][]string{
		{"search", "pattern=needle", "path=line.txt"}, {"grep", "pattern=needle", "source=line.txt"}, {"slice", "bytes=-10", "source=line.txt"}, {"slice", "lines=1", "source=line.txt"},
		{"read", "path=line.txt"}, {"find", "show=stat"}, {"jq", "filter=length", "source=line.txt"},
	} {
		cmd := exec.CommandContext(t.Context(), binary(t), append([]string{"--root", root, "call"}, words...)...)
		cmd.Env = env
		out, _ := cmd.Output() // what is binary is refused by some, in words
		if peak := peakOf(cmd.ProcessState); peak > 256<<20 {
			t.Errorf("%v took %d MiB", words, peak>>20)
		}
		if len(out) == 0 || len(out) > 60_000 {
			t.Errorf("%v answered %d bytes", words, len(out))
		}
		t.Logf("%v: %.120q", words, out)
	}
}
