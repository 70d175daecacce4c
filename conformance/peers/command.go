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
	"strconv"
	"strings"
	"time"
)

// command is a contestant that is a process, made anew at every run: its start is part of its time.
type command struct {
	b      *bench
	words  []string // the first one is looked up
	dir    string
	stdin  string // file; "": nothing
	stdout string // file, removed after each run; "": held, up to heldOutput
	env    []string
	pinned bool                                     // to one core
	took   func(said string) (time.Duration, error) // where the process says itself how long its work took; nil: all its time
	after  func() error                             // after each run, not timed
}

// heldOutput is how much of what a command says is read for comparison, in bytes.
const heldOutput = 64 << 20

func (c *command) close() {}

func (c *command) once(ctx context.Context, watched bool) (s sample, err error) {
	path, err := program(c.words[0])
	if err != nil {
		return s, err
	}
	words := append([]string{path}, c.words[1:]...)
	if c.pinned {
		taskset, err := program("taskset")
		if err != nil {
			return s, err
		}
		words = append([]string{taskset, "-c", firstCore()}, words...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.b.bin, "shim"), words...)
	cmd.Dir, cmd.Env = c.dir, append(append(os.Environ(), "LC_ALL=C.UTF-8", "RIPGREP_CONFIG_PATH="), c.env...)
	var out, errs bytes.Buffer
	cmd.Stderr = &errs
	if c.stdin != "" {
		f, err := os.Open(c.stdin)
		if err != nil {
			return s, err
		}
		defer func() { _ = f.Close() }()
		cmd.Stdin = f
	}
	// Not /dev/null: grep stops at its first match where it sees that nobody reads.
	target := c.stdout
	if target == "" {
		target = filepath.Join(c.b.work, "stdout")
	}
	f, err := os.Create(target)
	if err != nil {
		return s, err
	}
	defer func() { _, _ = f.Close(), os.Remove(target) }()
	cmd.Stdout = f
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
	var nanos, most int64
	var code int
	if _, err := fmt.Sscan(out.String(), &nanos, &most, &code); err != nil {
		return s, fmt.Errorf("%s: no report: %w: %.300s", c.words[0], err, errs.String())
	}
	if code != 0 && (code != 1 || c.words[0] != "rg") { // 1 of rg: nothing was found
		return s, fmt.Errorf("%s ended with %d: %.300s", strings.Join(c.words, " "), code, errs.String())
	}
	s.took, s.peak = time.Duration(nanos), max(peak, most)
	if watched || c.took != nil {
		said, err := readUpTo(target)
		if err != nil {
			return s, err
		}
		s.said = said
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

func readUpTo(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, heldOutput))
	return string(b), err
}

// watch looks every 2 ms at the processes below one and gives the most they held together, each at its own peak.
// What a process grew by in its last 2 ms is not seen: the shim's own count is taken where it is more.
func watch(pid int, report io.Reader, out *bytes.Buffer) int64 {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(out, report) // ends with the shim; what is missing is found by who reads it
	}()
	var most int64
	for {
		select {
		case <-ended:
			return most
		case <-time.After(2 * time.Millisecond):
			var sum int64
			for _, p := range below(pid) {
				sum += highWater(p)
			}
			most = max(most, sum)
		}
	}
}

// below are the processes that descend from one, without it.
func below(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b[bytes.LastIndexByte(b, ')')+1:]), " ") // behind the name: state, parent
		if fields := strings.Fields(rest); len(fields) > 1 {
			if parent, err := strconv.Atoi(fields[1]); err == nil {
				children[parent] = append(children[parent], p)
			}
		}
	}
	var all []int
	for next := children[pid]; len(next) > 0; {
		var more []int
		for _, p := range next {
			all = append(all, p)
			more = append(more, children[p]...)
		}
		next = more
	}
	return all
}

// highWater is the most memory a process has held, in bytes; 0 where it is gone.
func highWater(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	field, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	kilobytes, _ := strconv.ParseInt(field, 10, 64)
	return kilobytes << 10
}

// firstCore is the first one this process may use.
func firstCore() string {
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
	list, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	if n := strings.IndexAny(list, ",-"); n > 0 {
		list = list[:n]
	}
	if list == "" {
		return "0"
	}
	return list
}

// funnel is the product's command line: `mcp-funnel FLAGS call TOOL ARGS`.
func (b *bench) funnel(root string, flags ...string) []string {
	return append([]string{filepath.Join(b.bin, "mcp-funnel"), "--root", root, "--store", b.store(), "--min-free", "0", "--call-timeout", "10m"}, flags...)
}

func (b *bench) store() string { return filepath.Join(b.work, "store") }

// called is the words of one tool call.
func called(tool string, args map[string]any) []string {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err) // plain maps of strings
	}
	return []string{"call", tool, string(text)}
}
