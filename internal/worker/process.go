package worker

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// process is one started worker and the parent's ends of its pipes.
type process struct {
	cmd            *exec.Cmd
	cpu            time.Duration // its limit
	stdin          *os.File      // the job, then In
	stdout, stderr *os.File
	ended          atomic.Bool // the process has ended; only the rest of its output is in the pipes
	done           chan struct{}
	exitErr        error      // how it ended; valid once done is closed
	mu             sync.Mutex // held while the pid is used or released
	reaped         bool       // the pid may belong to another process
	abort          chan error // a reason to kill it
	copied         int64
	tail           tail
	copying        sync.WaitGroup
}

// start starts the process on a thread that lives as long as the process: the kernel sends the parent-death signal when
// the thread ends.
func start(isolated bool) (*process, error) {
	p := &process{done: make(chan struct{}), abort: make(chan error, 1)}
	cmd := exec.Command(binary()) //nolint:noctx // run kills the whole group when ctx ends
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
		{controlSocket, &p.stdin, func(f *os.File) { cmd.Stdin = f }},
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
		p.exitErr = p.reap()
		p.ended.Store(true)
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
	case <-time.After(killTimeout):
	}
	p.close()
}

// kill kills the worker and all processes it started.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		killGroup(p.cmd.Process)
	}
	_ = p.cmd.Process.Kill() // os.Process checks whether the process has ended
}

// reap waits for the end of the worker and kills the rest of its process group while the pid is still its own.
func (p *process) reap() (err error) {
	ended := awaitEnd(p.cmd.Process)
	if !ended {
		err = p.cmd.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended {
		killGroup(p.cmd.Process)
		err = p.cmd.Wait() // returns at once
	}
	p.reaped = true
	return err
}

// readOutput reads until the end, or until nothing has come for the grace period after the process has ended.
func (p *process) readOutput(r *os.File, size int, take func([]byte) error) {
	defer p.copying.Done()
	buf := make([]byte, size)
	for {
		last := p.ended.Load()
		if last {
			_ = r.SetReadDeadline(time.Now().Add(grace))
		}
		n, err := r.Read(buf)
		if last && errors.Is(err, os.ErrDeadlineExceeded) {
			// The deadline may have passed before the first read: then the rest of the output is in the pipe.
			if n = readAvailable(r, buf); n > 0 {
				err = nil
			}
		}
		if n > 0 {
			if err := take(buf[:n]); err != nil {
				p.abort <- err
				// Discard the rest, so that the worker does not block on a full pipe until it is killed.
				take = func([]byte) error { return nil }
			}
		}
		if err != nil && (last || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return
		}
	}
}

func (p *process) copyOutput(b []byte, limit int64, out io.Writer) error {
	if limit > 0 && p.copied+int64(len(b)) > limit {
		b = b[:limit-p.copied]
		p.copied = limit
		if _, err := out.Write(b); err != nil {
			return err
		}
		return ErrOutput
	}
	p.copied += int64(len(b))
	_, err := out.Write(b)
	return err
}

// waitForOutput waits until the rest of the output was copied, and closes the pipes.
func (p *process) waitForOutput() {
	p.ended.Store(true)
	_ = p.stdout.SetReadDeadline(time.Now()) // wakes a reader whose pipe may never end
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

// verdict returns nil if the worker succeeded, else an error with the reason.
func (p *process) verdict(s Spec, cause error) error {
	e := &Error{Name: s.Name, Cause: cause}
	switch {
	case cause == nil:
	case errors.Is(cause, ErrOutput), errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return e
	default: // an error of out: the caller's own
		return cause
	}
	select {
	case <-p.done:
	default:
		return e // killed, but hanging in the kernel
	}
	if p.exitErr == nil {
		return nil
	}
	e.Line = p.tail.line()
	var exit *exec.ExitError
	if !errors.As(p.exitErr, &exit) {
		e.Cause, e.Line = ErrCrashed, p.exitErr.Error()
		return e
	}
	switch {
	case exit.ExitCode() == exitFailed:
		e.Cause = ErrFailed
	case p.tail.containsAny(memoryWords):
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
