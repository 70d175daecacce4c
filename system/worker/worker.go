// Package worker runs functions of this binary in processes of their own, and bounds and ends these processes.
//
// A worker is a function that must not use the memory, the time or the rights of its caller's process. It runs in a
// child process of the same binary. The child holds only the descriptors it was given, and is killed at the latest when
// the caller's context ends:
//
//	parent                                   child (__worker job)
//	Run ── start, in namespaces ───────────► Main
//	  │                                        no new rights, Landlock, system call filter
//	  ├─ job, Spec.Files ── stdin ───────────► limits, files
//	  ├─ Spec.In ────────── stdin ───────────► in
//	  ├─ out ◄────────── stdout, counted ───── out
//	  └─ SIGKILL at the end of ctx, at a cap, or when the parent dies
//
// A worker receives its job after it has started, so that it can be started before there is a job: see [KeepSpare].
//
// Package main passes the worker functions. This package is no sandbox for other commands.
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

// mostDefault is the largest default limit, 4 GiB.
const mostDefault = 4 << 30

// MachineMemory returns the default limit for workers that may need much: an eighth of the memory of this machine, or
// of its container, from DefaultMemory to 4 GiB.
func MachineMemory() int64 { return min(max(machineMemory()/8, DefaultMemory), mostDefault) }

// MinMemory is the smallest memory limit of a worker, 64 MiB; smaller limits are raised to it.
const MinMemory = 64 << 20

// Hidden arguments that make a process a worker.
const (
	argument = "__worker"
	awaits   = "job"
)

// A Worker reads in and files and writes its answer to out. The process ends when the function returns; its error
// becomes the last line of stderr.
type Worker func(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error

// Spec describes one run of a worker.
type Spec struct {
	Name string // of the worker function

	// In is copied to the worker until In ends or fails, or the worker ends; nil is empty. Run does not wait for a Read
	// that blocks: the caller must end that Read.
	In io.Reader

	// Files are passed to the worker open, in this order. Run does not close them. Parent and worker share the offset
	// of a file, so workers must use ReadAt.
	Files []*os.File

	Feeds bool // other workers read its output: it must not wait for them
	Small bool // the input is small: the job may use the slot reserved for such jobs

	Memory int64 // bytes the worker may use beyond those at its start; 0: DefaultMemory
	// CPU is the CPU time of all threads, in whole seconds; 0: twice the time until the deadline, at most 10 minutes.
	CPU    time.Duration
	Output int64 // bytes of output before Run ends the worker with [ErrOutput]; 0: unlimited
}

// Reasons why a worker ended. An [*Error] wraps one of these, [context.Canceled] or [context.DeadlineExceeded].
var (
	ErrMemory  = errors.New("out of memory")
	ErrCPU     = errors.New("out of processor time")
	ErrOutput  = errors.New("too much output")
	ErrFailed  = errors.New("failed")  // the worker function returned an error
	ErrCrashed = errors.New("crashed") // the worker panicked, or another process killed it
)

// Error reports why a worker failed.
type Error struct {
	Name  string
	Cause error
	Line  string // the last line of the worker's stderr, at most 200 bytes; may be empty
}

func (e *Error) Error() string {
	s := "worker " + e.Name + ": " + e.Cause.Error()
	if e.Line != "" {
		s += ": " + e.Line
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// ready is set by Main. Run refuses to start workers before: in a program that does not call Main, each worker would
// run the program's own main, or its tests, and start further workers.
var ready atomic.Bool

// Main runs a worker if the arguments ask for one. Then ran is true, and the process must exit with code at once. Call
// Main first in main, and in TestMain of tests whose code runs workers.
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

// runChild is the main function of a child process: it drops its rights, receives a job and runs the job.
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
	if errors.Is(err, io.EOF) { // the parent has no job for this worker
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

// environment returns all variables of a worker: a setting that keeps the Go runtime's crash reports short, and the
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
	Detail string `json:"detail"` // what the layer prevents, or why it does not work
}
