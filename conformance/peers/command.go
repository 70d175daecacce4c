//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// command is a contestant that starts a new process for every run, so its time includes the start.
type command struct {
	b      *bench
	words  []string // program and arguments; the program is looked up in PATH
	dir    string
	stdin  string // path of a file; "": no input
	stdout string // path of a file, removed after each run; "": read up to heldOutput
	env    []string
	pinned bool // run on one core
	// extracts the time of the work from the process's output; nil: the time of the whole process
	took  func(said string) (time.Duration, error)
	after func() error // called after each run, not timed
}

// heldOutput is the maximum number of bytes of a command's output that are read for comparison.
const heldOutput = 64 << 20

func (c *command) close() {}

func (c *command) once(ctx context.Context, watched bool) (s sample, err error) {
	// Not /dev/null: grep stops at its first match if it sees that nobody reads its output.
	target := cmp.Or(c.stdout, filepath.Join(c.b.work, "stdout"))
	stdout, err := os.Create(target)
	if err != nil {
		return s, err
	}
	defer func() { _, _ = stdout.Close(), os.Remove(target) }()
	if s, err = c.run(ctx, stdout, watched); err != nil {
		return s, err
	}
	if watched || c.took != nil {
		said, err := io.ReadAll(io.NewSectionReader(stdout, 0, heldOutput))
		if err != nil {
			return s, err
		}
		s.said = string(said)
	}
	if c.took != nil {
		if s.took, err = c.took(s.said); err != nil {
			return s, err
		}
	}
	if c.after != nil {
		return s, c.after()
	}
	return s, nil
}

// run runs the command through the shim.
func (c *command) run(ctx context.Context, stdout *os.File, watched bool) (s sample, err error) {
	path, err := program(c.words[0])
	if err != nil {
		return s, err
	}
	words := onOneCore(append([]string{path}, c.words[1:]...), c.pinned)
	if words[0], err = program(words[0]); err != nil { // taskset also needs its full path
		return s, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.b.bin, "shim"), words...)
	cmd.Dir, cmd.Env = c.dir, append(append(os.Environ(), "LC_ALL=C.UTF-8", "RIPGREP_CONFIG_PATH="), c.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &errs
	if c.stdin != "" {
		f, err := os.Open(c.stdin)
		if err != nil {
			return s, err
		}
		defer func() { _ = f.Close() }()
		cmd.Stdin = f
	}
	report, told, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer func() { _ = report.Close() }()
	cmd.ExtraFiles = []*os.File{told}
	err = cmd.Start()
	_ = told.Close()
	if err != nil {
		return s, err
	}
	var peak int64
	if watched {
		peak = watch(cmd.Process.Pid, report, &out)
	} else if _, err := io.Copy(&out, report); err != nil {
		return s, err
	}
	if err := cmd.Wait(); err != nil {
		return s, fmt.Errorf("%s: %w: %.300s", c.words[0], err, errs.String())
	}
	var code int
	if _, err := fmt.Sscan(out.String(), &s.took, &s.peak, &code); err != nil {
		return s, fmt.Errorf("%s: no report: %w: %.300s", c.words[0], err, errs.String())
	}
	if code != 0 && (code != 1 || c.words[0] != "rg") { // rg exits with 1 if it finds nothing
		return s, fmt.Errorf("%s ended with %d: %.300s", strings.Join(c.words, " "), code, errs.String())
	}
	s.peak = max(peak, s.peak)
	return s, nil
}

// watch polls the descendants of a process every 2 ms and returns the largest sum of their peak memory, in bytes. It
// misses growth in the last 2 ms of a process; the caller uses the shim's figure if that is larger.
func watch(pid int, report io.Reader, out *bytes.Buffer) int64 {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(out, report) // ends with the shim; the caller detects an incomplete report
	}()
	var most int64
	for {
		select {
		case <-ended:
			return most
		case <-time.After(2 * time.Millisecond):
			var sum int64
			for _, p := range below(pid) {
				sum += statusBytes(p, "VmHWM:") // the peak of each process
			}
			most = max(most, sum)
		}
	}
}

// below returns the descendants of a process, without the process itself.
func below(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // empty if the process has ended
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), below(child)...)
			}
		}
	}
	return all
}

// statusBytes returns a memory figure of a process from /proc, in bytes; 0 if the process has ended.
func statusBytes(pid int, figure string) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), figure)
	var kilobytes int64
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes << 10
}

// onOneCore returns the command, with pinned prefixed so that it runs on the first core this process may use.
func onOneCore(words []string, pinned bool) []string {
	if !pinned {
		return words
	}
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
	var core int
	_, _ = fmt.Sscan(rest, &core) // reads the 0 of "0-3"
	return append([]string{"taskset", "-c", strconv.Itoa(core)}, words...)
}

// funnel returns the product's command line: `mcp-funnel FLAGS call TOOL ARGS`.
func (b *bench) funnel(root string, flags ...string) []string {
	return append(
		[]string{
			filepath.Join(b.bin, "mcp-funnel"), "--root", root, "--store", b.store(), "--min-free", "0", "--call-timeout", "10m",
		},
		flags...,
	)
}

func (b *bench) store() string { return filepath.Join(b.work, "store") }

// called returns the arguments for one tool call.
func called(tool string, args map[string]any) []string {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err) // these maps always encode
	}
	return []string{"call", tool, string(text)}
}
