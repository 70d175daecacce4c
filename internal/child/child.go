// Package child starts, bounds and ends processes: workers of this very binary.
//
// A worker is a function that may not be trusted with the memory, the time or
// the rights of the process that needs its answer. It runs in a child that is
// this binary again, holds nothing but the descriptors it was given, and ends
// by a hard kill at the latest when its caller's context ends:
//
//	parent                                   child (__worker job)
//	Run ── start, in namespaces ───────────► Main
//	  │                                        no new rights, Landlock, filter of calls
//	  ├─ job, Spec.Files ── stdin ───────────► limits, files
//	  ├─ Spec.In ────────── stdin ───────────► in
//	  ├─ out ◄────────── stdout, counted ───── out
//	  └─ SIGKILL at the end of ctx, at a cap, or when the parent dies
//
// What it does comes to a worker when it runs already, so that one may be started ahead: see [KeepSpare].
//
// It knows nothing of what a worker does: the command hands it the worker
// functions. It is no sandbox for foreign commands.
package child

import (
	"bytes"
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

// DefaultMemory is what a worker may hold where [Spec] does not say: 512 MiB.
const DefaultMemory = 512 << 20

// MinMemory is the least a worker can live on; smaller figures are raised to it.
const MinMemory = 64 << 20

// argument and awaits are the hidden arguments that make a process a worker.
const (
	argument = "__worker"
	awaits   = "job"
)

// A Worker reads in and files and answers on out. It runs in a process of its
// own, which ends when it returns; an error becomes the last line of stderr.
type Worker func(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error

// Spec is one run of a worker.
type Spec struct {
	Name string // of the worker function

	// In is copied to the worker until it ends, fails, or the worker does; nil is empty. Run does not wait
	// for a Read that blocks: the caller ends it.
	In io.Reader

	// Files are passed open, in this order. Run does not close them. The offset
	// of a file is shared with the parent: workers read by position.
	Files []*os.File

	Memory int64         // bytes the worker may hold on top of what it starts with; 0: DefaultMemory
	CPU    time.Duration // of all its threads, in whole seconds; 0: twice what is left until the deadline, at most 10 minutes
	Output int64         // bytes of output taken before the worker is ended with [ErrOutput]; 0: no cap
}

// Why a worker ended; an [*Error] wraps one of these, [context.Canceled] or [context.DeadlineExceeded].
var (
	ErrMemory  = errors.New("out of memory")
	ErrCPU     = errors.New("out of processor time")
	ErrOutput  = errors.New("too much output")
	ErrFailed  = errors.New("failed")  // the worker function returned an error
	ErrCrashed = errors.New("crashed") // it panicked or was killed from outside
)

// Error says how a worker ended when it did not end well.
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

// ready says that this process called Main: only then may it start copies of
// itself. A program that forgot would run its own main, or its tests, again and again.
var ready atomic.Bool

// Main runs a worker where the arguments say so, and then ran is true and the
// process should exit with code at once. It must be called first thing in
// main, and in TestMain of tests whose code runs workers.
func Main(args []string, workers map[string]Worker) (ran bool, code int) {
	if len(args) < 2 || args[1] != argument {
		ready.Store(true)
		return false, 0
	}
	if err := work(args[2:], workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, exitFailed
	}
	return true, 0
}

// exitFailed is how a worker whose function failed ends; 2 is the Go runtime's own, for panics and fatal errors.
const exitFailed = 1

// work is the life of a child: it gives up its rights, is told what to do, and does it.
func work(args []string, workers map[string]Worker) error {
	if len(args) != 1 || args[0] != awaits {
		return errors.New("this is how mcp-funnel starts its own workers; there is nothing to call here")
	}
	// The time zone is read from disk at its first use, which would come too late.
	_, _ = time.Now().Zone()
	bounds, err := confine()
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	head, files, err := receive()
	if errors.Is(err, io.EOF) { // it was not needed
		return nil
	} else if err != nil {
		return err
	}
	var j job
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

// job is what a worker is told first, in a message of headSize bytes, with the files.
type job struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory"`
	CPU    int64  `json:"cpu"` // seconds
	Files  int    `json:"files"`
}

const (
	headSize = 256 // of a job on its way, blanks after it included: what follows is the worker's input
	maxFiles = 16  // that a worker may be given
)

func (j job) head() ([]byte, error) {
	b, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	if len(b) > headSize || j.Files > maxFiles {
		return nil, errors.New("its name is too long, or its files are too many")
	}
	return append(b, bytes.Repeat([]byte{' '}, headSize-len(b))...), nil
}

// environment is all a worker gets: what the Go runtime needs to be brief when
// it dies, and the time zone, so that local times are the parent's.
func environment() []string {
	env := []string{"GOTRACEBACK=none"}
	if tz, ok := os.LookupEnv("TZ"); ok && !strings.ContainsRune(tz, 0) {
		env = append(env, "TZ="+tz)
	}
	return env
}
