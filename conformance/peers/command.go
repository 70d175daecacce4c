//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// command is a runner that starts a new process for every run, so its time includes the start.
type command struct {
	b     *bench
	words []string // program and arguments; the program is looked up in PATH
	dir   string
	stdin string // path of a file; "": no input
	// reads the time of the work from the process's output; nil: the time of the whole process
	timeIn func(output string) (time.Duration, error)
	after  func() error // called after each run, not timed
}

// maxOutput is the maximum number of bytes of a command's output that are read for comparison.
const maxOutput = 64 << 20

func (c *command) close() {}

// run runs the command through the shim, which reports time, peak memory and exit code in a file. A watched run also
// adds up the peak memory of all its processes every 2 ms; that misses growth in a process's last 2 ms.
func (c *command) run(ctx context.Context, watched bool) (s sample, err error) {
	words := slices.Clone(c.words)
	if words[0], err = program(words[0]); err != nil { // the shim does not search PATH
		return s, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.b.bin, "shim"), words...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "LC_ALL=C.UTF-8", "RIPGREP_CONFIG_PATH=")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	// Not /dev/null: grep stops at its first match if it sees that nobody reads its output.
	stdout, err := os.Create(filepath.Join(c.b.work, "stdout"))
	if err != nil {
		return s, err
	}
	defer func() { _, _ = stdout.Close(), os.Remove(stdout.Name()) }()
	report, err := os.Create(filepath.Join(c.b.work, "report"))
	if err != nil {
		return s, err
	}
	defer func() { _ = report.Close() }()
	cmd.Stdout, cmd.ExtraFiles = stdout, []*os.File{report}
	if c.stdin != "" {
		f, err := os.Open(c.stdin)
		if err != nil {
			return s, err
		}
		defer func() { _ = f.Close() }()
		cmd.Stdin = f
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak := watch(cmd.Process.Pid, ended, watched)
	var code int
	if _, err := fmt.Fscan(io.NewSectionReader(report, 0, 100), &s.time, &s.peak, &code); err != nil {
		return s, fmt.Errorf("%s: no report: %w: %.300s", c.words[0], err, errs.String())
	}
	if code != 0 && (code != 1 || !slices.Contains(c.words, "rg")) { // rg exits with 1 if it finds nothing
		return s, fmt.Errorf("%s ended with %d: %.300s", strings.Join(c.words, " "), code, errs.String())
	}
	s.peak = max(peak, s.peak)
	if watched || c.timeIn != nil {
		text, err := io.ReadAll(io.NewSectionReader(stdout, 0, maxOutput))
		if err != nil {
			return s, err
		}
		s.output = string(text)
	}
	if c.timeIn != nil {
		if s.time, err = c.timeIn(s.output); err != nil {
			return s, err
		}
	}
	if c.after != nil {
		return s, c.after()
	}
	return s, nil
}

// watch waits for a process. If watched, it returns the largest sum of the peak memory of its descendants, in bytes.
// The exit status of the shim does not matter: the caller sees an incomplete report.
func watch(pid int, ended <-chan error, watched bool) (most int64) {
	var poll <-chan time.Time
	if watched {
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		poll = ticker.C
	}
	for {
		select {
		case <-ended:
			return most
		case <-poll:
			var sum int64
			for _, p := range descendants(pid) {
				sum += status(p, "VmHWM:") << 10 // the peak of each process, in kB
			}
			most = max(most, sum)
		}
	}
}

func descendants(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // empty if the process has ended
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// status returns the number after a name in the status of a process in /proc; 0 if the process has ended.
func status(pid int, name string) (n int64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), name)
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// onOneCore returns the command so that it runs on the first core this process may use.
func onOneCore(words []string) []string {
	core := status(os.Getpid(), "Cpus_allowed_list:") // the 0 of "0-3"
	return append([]string{"taskset", "-c", fmt.Sprint(core)}, words...)
}

// funnel returns the product's command line without the command: `mcp-funnel FLAGS`.
func (b *bench) funnel(root string, flags ...string) []string {
	return append([]string{
		filepath.Join(b.bin, "mcp-funnel"), "--root", root, "--store", filepath.Join(b.work, "store"),
		"--min-free", "0", "--call-timeout", "10m",
	}, flags...)
}

// toolPair returns one tool call, by a process of its own and by a running server, and a peer's command line. All run
// in directory dir, which is the root.
func (b *bench) toolPair(dir, tool string, args map[string]any, peer []string, flags ...string) *pair {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err) // these maps always encode
	}
	base := b.funnel(dir, flags...)
	return &pair{
		ours:   &command{b: b, dir: dir, words: slices.Concat(base, []string{"call", tool, string(text)})},
		served: &served{words: base, tool: tool, args: args},
		peer:   &command{b: b, dir: dir, words: peer},
	}
}
