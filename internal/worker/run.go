package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

const (
	// grace is how long to wait for more output after the process has ended: a descriptor inherited by another process
	// never reaches its end.
	grace = 200 * time.Millisecond

	// killTimeout is how long to wait for a killed process; one that hangs in the kernel is left to the reaper.
	killTimeout = 2 * time.Second

	longestCPU = 10 * time.Minute
)

// Slots limit how many workers run at once, because each may use its whole memory limit. Any job may take a workerSlot.
// The reserved slot is for jobs with a small input when all others are taken, so that they don't wait for long jobs.
var (
	workerSlots  = make(chan struct{}, max(2, runtime.NumCPU()))
	smallJobSlot = make(chan struct{}, 1)
)

// acquireSlot waits for a slot until ctx ends. The caller must release it.
func acquireSlot(ctx context.Context, small bool) (release func(), err error) {
	select {
	case workerSlots <- struct{}{}:
		return func() { <-workerSlots }, nil
	default:
	}
	extra := smallJobSlot
	if !small {
		extra = nil // never ready
	}
	select {
	case workerSlots <- struct{}{}:
		return func() { <-workerSlots }, nil
	case extra <- struct{}{}:
		return func() { <-extra }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Run runs a worker and copies its output to out as it comes. It returns when the worker has ended and all its output
// was written. When ctx ends the worker is killed. Errors are an *Error, an error of out unchanged, or why no worker
// could be started.
func Run(ctx context.Context, s Spec, out io.Writer) error {
	if !ready.Load() {
		return errors.New(
			"worker " + s.Name + ": this program cannot start workers: worker.Main was not called first thing in main",
		)
	}
	if ctx.Err() != nil {
		return &Error{Name: s.Name, Cause: ctx.Err()}
	}
	release, err := acquireSlot(ctx, s.Small)
	if err != nil {
		return &Error{Name: s.Name, Cause: err, Line: "all workers were busy until then"}
	}
	defer release()
	err = run(ctx, s, out, isolate())
	if err == nil {
		spare.refill()
	}
	return err
}

func run(ctx context.Context, s Spec, out io.Writer, isolated bool) error {
	p, err := handOver(ctx, s, isolated)
	if err != nil {
		return fmt.Errorf("worker %s: it could not be started: %w", s.Name, err)
	}
	go func() {
		if s.In != nil {
			_, _ = io.Copy(p.stdin, s.In)
		}
		_ = p.stdin.Close()
	}()
	p.copying.Add(2)
	go p.readOutput(p.stdout, 64<<10, func(b []byte) error { return p.copyOutput(b, s.Output, out) })
	go p.readOutput(p.stderr, tailSize, func(b []byte) error { p.tail.write(b); return nil })

	var cause error
	select {
	case <-p.done:
	case <-ctx.Done():
		cause = ctx.Err()
	case cause = <-p.abort:
	}
	if cause != nil {
		p.kill()
		select {
		case <-p.done:
		case <-time.After(killTimeout):
		}
	}
	p.waitForOutput()
	if cause == nil {
		select {
		case cause = <-p.abort: // the last output exceeded the cap, or out failed
		default:
		}
	}
	return p.verdict(s, cause)
}

// handOver sends a job to the spare worker, or to a new one.
func handOver(ctx context.Context, s Spec, isolated bool) (*process, error) {
	cpu := cpuSeconds(ctx, s)
	head, err := jobHeader{s.Name, memory(s), cpu, len(s.Files)}.encode()
	if err != nil {
		return nil, err
	}
	for p := spare.claim(); ; p = nil {
		fresh := p == nil
		if fresh {
			if p, err = start(isolated); err != nil {
				return nil, err
			}
		}
		p.cpu = time.Duration(cpu) * time.Second
		if err = sendJob(p.stdin, head, s.Files); err == nil {
			return p, nil
		}
		p.discard()
		if fresh {
			return nil, err
		}
	}
}

func memory(s Spec) int64 {
	if s.Memory <= 0 {
		return DefaultMemory
	}
	return max(s.Memory, MinMemory)
}

func cpuSeconds(ctx context.Context, s Spec) int64 {
	cpu := s.CPU
	if cpu <= 0 {
		cpu = longestCPU
		if d, ok := ctx.Deadline(); ok {
			cpu = min(cpu, 2*time.Until(d)+time.Second)
		}
	}
	return int64((cpu + time.Second - 1) / time.Second)
}
