// Package worker runs functions of this binary in processes of their own, and bounds and ends these processes.
//
// A worker is a function that must not use the memory, the time or the rights of the process that needs its answer. It
// runs in a child process of the same binary, which holds nothing but the descriptors it was given, and is killed at
// the latest when its caller's context ends:
//
//	parent                                   child (__worker job)
//	Run ── start, in namespaces ───────────► Main
//	  │                                        no new rights, Landlock, system call filter
//	  ├─ job, Spec.Files ── stdin ───────────► limits, files
//	  ├─ Spec.In ────────── stdin ───────────► in
//	  ├─ out ◄────────── stdout, counted ───── out
//	  └─ SIGKILL at the end of ctx, at a cap, or when the parent dies
//
// A worker receives its job after it has started, so that one can be started ahead: see [KeepSpare].
//
// The package does not know what a worker does: package main passes the functions. It is no sandbox for other commands.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultMemory is the memory limit of a worker if [Spec] has none: 512 MiB.
const DefaultMemory = 512 << 20

// MinMemory is the least memory a worker can run in; smaller limits are raised to it.
const MinMemory = 64 << 20

// Hidden arguments that make a process a worker.
const (
	argument = "__worker"
	awaits   = "job"
)

// A Worker reads in and files and writes its answer to out. Its process ends when it returns; an error becomes the last
// line of stderr.
type Worker func(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error

// Spec describes one run of a worker.
type Spec struct {
	Name string // of the worker function

	// In is copied to the worker until it ends, fails, or the worker ends; nil is empty. Run does not wait for a Read
	// that blocks: the caller must end it.
	In io.Reader

	// Files are passed open, in this order. Run does not close them. Parent and worker share the offset of a file:
	// workers must use ReadAt.
	Files []*os.File

	Small bool // its input is small: it may use the slot reserved for such jobs

	Memory int64 // bytes the worker may use beyond those at its start; 0: DefaultMemory
	// of all its threads, in whole seconds; 0: twice the time until the deadline, at most 10 minutes
	CPU    time.Duration
	Output int64 // bytes of output before the worker is ended with [ErrOutput]; 0: unlimited
}

// Reasons why a worker ended. An [*Error] wraps one of these, [context.Canceled] or [context.DeadlineExceeded].
var (
	ErrMemory  = errors.New("out of memory")
	ErrCPU     = errors.New("out of processor time")
	ErrOutput  = errors.New("too much output")
	ErrFailed  = errors.New("failed")  // the worker function returned an error
	ErrCrashed = errors.New("crashed") // it panicked or was killed from outside
)

// Error reports why a worker failed.
type Error struct {
	Name  string
	Cause error
	Line  string // the last line of its stderr, at most 200 bytes; may be empty
}

func (e *Error) Error() string {
	s := "worker " + e.Name + ": " + e.Cause.Error()
	if e.Line != "" {
		s += ": " + e.Line
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// ready is set by Main. Only then may this process start copies of itself: a program without Main would run its own
// main, or its tests, again and again.
var ready atomic.Bool

// Main runs a worker if the arguments ask for one. Then ran is true and the process must exit with code at once. Call
// it first in main, and in TestMain of tests whose code runs workers.
func Main(args []string, workers map[string]Worker) (ran bool, code int) {
	if len(args) < 2 || args[1] != argument {
		ready.Store(true)
		return false, 0
	}
	if err := runChild(args[2:], workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, exitFailed
	}
	return true, 0
}

// exitFailed is the exit code of a worker whose function failed; the Go runtime uses 2 for panics and fatal errors.
const exitFailed = 1

// runChild is the main function of a child process: it gives up its rights, receives its job and runs it.
func runChild(args []string, workers map[string]Worker) error {
	if len(args) != 1 || args[0] != awaits {
		return errors.New("this is how mcp-funnel starts its own workers; there is nothing to call here")
	}
	// Load the time zone now: later the process may not read files.
	_, _ = time.Now().Zone()
	bounds, err := confine()
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	head, files, err := receiveJob()
	if errors.Is(err, io.EOF) { // the parent did not need it
		return nil
	} else if err != nil {
		return err
	}
	var j jobHeader
	if err := json.Unmarshal(head, &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	worker, ok := workers[j.Name]
	if j.Name == probe {
		worker, ok = answerProbe, true
	}
	if !ok {
		return fmt.Errorf("no worker is called %q", j.Name)
	}
	if len(files) != j.Files {
		return fmt.Errorf("%d files came, not %d", len(files), j.Files)
	}
	if err := bounds.limit(max(j.Memory, MinMemory), max(j.CPU, 1)); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	return worker(context.Background(), os.Stdin, files, os.Stdout)
}

// environment returns all variables a worker gets: a setting that keeps the Go runtime's crash reports short, and the
// parent's time zone.
func environment() []string {
	env := []string{"GOTRACEBACK=none"}
	if tz, ok := os.LookupEnv("TZ"); ok && !strings.ContainsRune(tz, 0) {
		env = append(env, "TZ="+tz)
	}
	return env
}

// Layer is one layer of confinement, and whether it works on this machine.
type Layer struct {
	Name   string `json:"name"`
	Holds  bool   `json:"holds"`
	Detail string `json:"detail"` // what it prevents, or why it does not work
}
