package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

const (
	// grace is how long to wait for the rest of the output of a killed process. A pipe whose other end another process
	// has inherited never reaches its end.
	grace = 200 * time.Millisecond

	// killTimeout is how long to wait for a killed process. The goroutine of start reaps one that hangs in the kernel.
	killTimeout = 2 * time.Second

	// longestCPU is the CPU time that a worker may use unless its Spec says otherwise.
	longestCPU = 10 * time.Minute
)

// Slots limit how many workers run at once, because each worker may use its whole memory limit. Any job may take a
// workerSlot. When all are taken, a job with a small input may take the smallJobSlot, so that it does not wait for long
// jobs.
var (
	workerSlots  = make(chan struct{}, max(2, runtime.NumCPU()))
	smallJobSlot = make(chan struct{}, 1)
	feederSlots  = make(chan struct{}, cap(workerSlots)) // of jobs that others wait for, which hold a workerSlot
)

// acquireSlot waits for a slot until ctx ends. The caller must release the slot.
func acquireSlot(ctx context.Context, small, feeds bool) (release func(), err error) {
	slots := workerSlots
	if feeds {
		slots = feederSlots
	}
	select {
	case slots <- struct{}{}: // leave the reserved slot free if another is
		return func() { <-slots }, nil
	default:
	}
	extra := smallJobSlot
	if !small {
		extra = nil // never ready
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case extra <- struct{}{}:
		return func() { <-extra }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Run runs a worker and copies its output to out at once. It returns when the worker has ended and all its output is
// written. When ctx ends, Run kills the worker. The error is an *Error, an unchanged error of out, or the reason why no
// worker could be started.
func Run(ctx context.Context, s Spec, out io.Writer) error {
	if !ready.Load() {
		return errors.New(
			"worker " + s.Name + ": this program cannot start workers: worker.Main was not called first thing in main",
		)
	}
	if ctx.Err() != nil {
		return &Error{Name: s.Name, Cause: ctx.Err()}
	}
	release, err := acquireSlot(ctx, s.Small, s.Feeds)
	if err != nil {
		return &Error{Name: s.Name, Cause: err, Line: "all workers were busy until then"}
	}
	defer release()
	err = run(ctx, s, out, isolate())
	if err == nil {
		spares.Fill(struct{}{}, func() (*process, error) { return start(isolate()) })
	}
	return err
}

func run(ctx context.Context, s Spec, out io.Writer, isolated bool) error {
	p, err := startJob(ctx, s, isolated)
	if err != nil {
		return fmt.Errorf("worker %s: it could not be started: %w", s.Name, err)
	}
	go func() {
		if s.In != nil {
			_, _ = io.Copy(p.stdin, s.In)
		}
		_ = p.stdin.Close()
	}()
	p.copying.Go(func() {
		p.readOutput(p.stdout, 64<<10, func(b []byte) error { return p.copyOutput(b, s.Output, out) })
	})
	p.copying.Go(func() {
		p.readOutput(p.stderr, tailSize, func(b []byte) error { p.tail.write(b); return nil })
	})
	ended := make(chan struct{})
	go func() {
		p.copying.Wait()
		<-p.done
		close(ended)
	}()

	var cause error
	select {
	case <-ended:
	case <-ctx.Done():
		cause = ctx.Err()
	case cause = <-p.abort:
	}
	if cause != nil {
		p.kill()
		late := time.AfterFunc(grace, p.close)
		defer late.Stop()
		p.copying.Wait()
	}
	p.close()
	if cause == nil {
		select {
		case cause = <-p.abort: // the last output exceeded the limit, or out failed
		default:
		}
	}
	return p.verdict(s, cause)
}

// startJob sends a job to the spare worker, or to a new one if there is none or sending fails.
func startJob(ctx context.Context, s Spec, isolated bool) (*process, error) {
	cpu := cpuSeconds(ctx, s)
	head, err := jobHeader{s.Name, max(cmp.Or(s.Memory, DefaultMemory), MinMemory), cpu, len(s.Files)}.encode()
	if err != nil {
		return nil, err
	}
	for p := claimSpare(); ; p = nil {
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

// cpuSeconds returns the CPU limit of a run in whole seconds, rounded up.
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
