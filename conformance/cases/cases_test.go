// Package cases runs the program on small inputs that were read wrongly once, with the right value of each.
//
// The inputs are in testdata/cases.tar.zst. A directory of them has a table here; a script of them starts servers of
// its own and prints "right:" or "WRONG:" for each line that it tries.
package cases

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
)

// hang is how long a process may take that answers within seconds on an idle machine.
const hang = 5 * time.Minute

// work holds the inputs.
var work string

func TestMain(m *testing.M) {
	if ran, code := sandbox.Main(os.Args); ran {
		os.Exit(code)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cases")
	if err == nil {
		work = dir
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		err = unpack(filepath.Join(dir, "inputs"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return built.Main(m)
}

// unpack writes the inputs below dir.
func unpack(dir string) error {
	f, err := os.Open(filepath.Join("testdata", "cases.tar.zst"))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	z, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, h.Name)
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o755) //nolint:gosec // test data
		} else if b, e := io.ReadAll(r); e != nil {
			err = e
		} else {
			err = os.WriteFile(path, b, h.FileInfo().Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
}

// one is a call of a tool, or a command, on a directory of inputs.
type one struct {
	dir   string
	args  []string // after "call", or a command with its arguments
	has   []string // texts that the answer has
	lacks []string // and those that it must not have
}

// try runs each call in a store of its own.
func try(t *testing.T, tests []one) {
	t.Helper()
	if promise.UnderRace {
		t.Skip("it drives a program that is built without the race detector: tried by the run without it")
	}
	for _, c := range tests {
		t.Run(c.dir+" "+strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			text := answer(t, c.dir, c.args...)
			expect.Contains(t, text, c.has...)
			for _, unwanted := range c.lacks {
				expect.Lacks(t, text, unwanted)
			}
		})
	}
}

// answer returns what the program prints for a tool or a command on a directory of inputs.
func answer(t *testing.T, dir string, args ...string) string {
	t.Helper()
	path := built.Program(t, "cmd/mcp-funnel")
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	all := []string{
		"--root", filepath.Join(work, "inputs", dir), "--store", t.TempDir(), "--toolsets", "core,answers,investigation",
	}
	cmd := exec.CommandContext(ctx, path, append(all, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if code := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &code) || code.ExitCode() != 1) {
		t.Fatalf("%v: %v\n%s", args, err, stderr.String())
	}
	return string(out) + stderr.String()
}

// call is a call of a tool as the command line has it: call("read", "path=a.docx").
func call(tool string, args ...string) []string { return append([]string{"call", tool}, args...) }

// question asks as the command line does.
func question(words string) []string { return []string{"ask", words} }

// script runs a script of the inputs, which fails if one of its lines is wrong.
func script(t *testing.T, name string) {
	t.Helper()
	if promise.UnderRace {
		t.Skip("it drives a program that is built without the race detector: tried by the run without it")
	}
	python := peer.Find(t, "python3")
	path := built.Program(t, "cmd/mcp-funnel")
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, filepath.Join(work, "inputs", filepath.FromSlash(name)))
	cmd.Env = append(os.Environ(), "FUNNEL_BIN="+path, "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	expect.OK(t, err, "%s\n%s", name, out)
}
