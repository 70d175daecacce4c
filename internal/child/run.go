package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// grace is how long output may stay silent after the process has ended before the rest is given up: a
	// descriptor that was inherited by someone else never reaches its end.
	grace = 200 * time.Millisecond

	// killed is how long a killed process may take to be gone; one that hangs in the kernel is left to the reaper.
	killed = 2 * time.Second

	longestCPU = 10 * time.Minute
)

// seats bounds how many workers run at once: each may hold its memory cap.
var seats = make(chan struct{}, max(2, runtime.NumCPU()))

// Run runs a worker and copies what it answers to out, as it comes. It returns
// when the worker has ended and everything it wrote has been taken. At the end
// of ctx the worker is killed. Errors are *Error, those of out as they are,
// or say why no worker could be started.
func Run(ctx context.Context, s Spec, out io.Writer) error {
	if !ready.Load() {
		return errors.New("worker " + s.Name + ": this program cannot start workers: child.Main was not called first thing in main")
	}
	if ctx.Err() != nil {
		return &Error{Name: s.Name, Cause: ctx.Err()}
	}
	select {
	case seats <- struct{}{}:
		defer func() { <-seats }()
	case <-ctx.Done():
		return &Error{Name: s.Name, Cause: ctx.Err(), Line: "all workers were busy until then"}
	}
	err := run(ctx, s, out, isolate())
	if err == nil {
		waiting.refill()
	}
	return err
}

// process is one started worker and the parent's ends of its pipes.
type process struct {
	cmd            *exec.Cmd
	cpu            time.Duration // its limit
	stdin          *os.File      // its job, then In
	stdout, stderr *os.File
	gone           atomic.Bool // the process has ended; what is in the pipes is the rest
	done           chan struct{}
	waited         error      // how it ended; to be read after done
	mu             sync.Mutex // held while its number is used or given up
	reaped         bool       // its number may be another process's
	over           chan error // a reason to end it early
	taken          int64
	tail           tail
	copying        sync.WaitGroup
}

func run(ctx context.Context, s Spec, out io.Writer, isolated bool) error {
	p, err := begin(ctx, s, isolated)
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
	go p.drain(p.stdout, 64<<10, func(b []byte) error { return p.take(b, s.Output, out) })
	go p.drain(p.stderr, tailSize, func(b []byte) error { p.tail.write(b); return nil })

	var cause error
	select {
	case <-p.done:
	case <-ctx.Done():
		cause = ctx.Err()
	case cause = <-p.over:
	}
	if cause != nil {
		p.kill()
		select {
		case <-p.done:
		case <-time.After(killed):
		}
	}
	p.finish()
	if cause == nil {
		select {
		case cause = <-p.over: // the end of the output was too much, or could not be handed on
		default:
		}
	}
	return p.verdict(s, cause)
}

// begin gives a job to the worker that waits for one, or to a new one.
func begin(ctx context.Context, s Spec, isolated bool) (*process, error) {
	cpu := cpuSeconds(ctx, s)
	head, err := job{s.Name, memory(s), cpu, len(s.Files)}.head()
	if err != nil {
		return nil, err
	}
	for p := waiting.take(); ; p = nil {
		fresh := p == nil
		if fresh {
			if p, err = start(isolated); err != nil {
				return nil, err
			}
		}
		p.cpu = time.Duration(cpu) * time.Second
		if err = send(p.stdin, head, s.Files); err == nil {
			return p, nil
		}
		p.discard()
		if fresh {
			return nil, err
		}
	}
}

// start starts the process on a thread that stays alive as long as it does:
// the kernel's parent-death signal is tied to the thread, not to the process.
func start(isolated bool) (*process, error) {
	p := &process{done: make(chan struct{}), over: make(chan error, 1)}
	cmd := exec.Command(binary()) //nolint:noctx // run itself kills it at the end of ctx: the whole group, and within a bound
	cmd.Args = []string{"mcp-funnel", argument, awaits}
	cmd.Env = environment()
	cmd.Dir = neutral
	cmd.SysProcAttr = attributes(isolated)
	p.cmd = cmd

	var theirs []*os.File
	closeAll := func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}
	for _, pipe := range []struct {
		open  func() (ours, theirs *os.File, err error)
		ours  **os.File
		their func(*os.File)
	}{
		{conduit, &p.stdin, func(f *os.File) { cmd.Stdin = f }},
		{os.Pipe, &p.stdout, func(f *os.File) { cmd.Stdout = f }},
		{os.Pipe, &p.stderr, func(f *os.File) { cmd.Stderr = f }},
	} {
		our, their, err := pipe.open()
		if err != nil {
			closeAll()
			p.close()
			return nil, err
		}
		*pipe.ours = our
		pipe.their(their)
		theirs = append(theirs, their)
	}

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.waited = p.reap()
		p.gone.Store(true)
		close(p.done)
	}()
	err := <-started
	closeAll()
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// discard ends a worker that has no job.
func (p *process) discard() {
	p.kill()
	select {
	case <-p.done:
	case <-time.After(killed):
	}
	p.close()
}

// kill ends the worker and all that it may have started.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		killGroup(p.cmd.Process)
	}
	_ = p.cmd.Process.Kill() // knows by itself whether the process is still the one
}

// reap waits for the end of the worker. What it left behind in its group is killed while its number is still its own.
func (p *process) reap() (err error) {
	ended := awaitEnd(p.cmd.Process)
	if !ended {
		err = p.cmd.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended {
		killGroup(p.cmd.Process)
		err = p.cmd.Wait() // at once
	}
	p.reaped = true
	return err
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

// drain reads until the end, or until nothing has come for a while after the process has ended.
func (p *process) drain(r *os.File, size int, take func([]byte) error) {
	defer p.copying.Done()
	buf := make([]byte, size)
	for {
		last := p.gone.Load()
		if last {
			_ = r.SetReadDeadline(time.Now().Add(grace))
		}
		n, err := r.Read(buf)
		if last && errors.Is(err, os.ErrDeadlineExceeded) {
			// It may have passed before anything was looked for: by then the rest is in the pipe all the same.
			if n = atHand(r, buf); n > 0 {
				err = nil
			}
		}
		if n > 0 {
			if err := take(buf[:n]); err != nil {
				p.over <- err
				// What follows is thrown away, so that the worker does not hang on a full pipe until it is killed.
				take = func([]byte) error { return nil }
			}
		}
		if err != nil && (last || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return
		}
	}
}

func (p *process) take(b []byte, limit int64, out io.Writer) error {
	if limit > 0 && p.taken+int64(len(b)) > limit {
		b = b[:limit-p.taken]
		p.taken = limit
		if _, err := out.Write(b); err != nil {
			return err
		}
		return ErrOutput
	}
	p.taken += int64(len(b))
	_, err := out.Write(b)
	return err
}

// finish waits until the rest of the output is taken, and lets go of the pipes.
func (p *process) finish() {
	p.gone.Store(true)
	_ = p.stdout.SetReadDeadline(time.Now()) // wakes a reader that waits for an end that may never come
	_ = p.stderr.SetReadDeadline(time.Now())
	p.copying.Wait()
	p.close()
}

func (p *process) close() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// verdict turns what is known of the end into nil or an error.
func (p *process) verdict(s Spec, cause error) error {
	e := &Error{Name: s.Name, Cause: cause}
	switch {
	case cause == nil:
	case errors.Is(cause, ErrOutput), errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return e
	default: // of out: it is the caller's own
		return cause
	}
	select {
	case <-p.done:
	default:
		return e // killed, and hanging in the kernel
	}
	if p.waited == nil {
		return nil
	}
	e.Line = p.tail.line()
	var exit *exec.ExitError
	if !errors.As(p.waited, &exit) {
		e.Cause, e.Line = ErrCrashed, p.waited.Error()
		return e
	}
	switch {
	case exit.ExitCode() == exitFailed:
		e.Cause = ErrFailed
	case p.tail.says(memoryWords):
		e.Cause = ErrMemory
	case exit.ExitCode() == -1 && outOfCPU(exit.ProcessState, p.cpu):
		e.Cause = ErrCPU
	default:
		e.Cause = ErrCrashed
		if e.Line == "" {
			e.Line = exit.String()
		}
	}
	return e
}
