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
	cpu            time.Duration // the worker's CPU limit
	stdin          *os.File      // carries the job, then Spec.In
	stdout, stderr *os.File
	done           chan struct{} // closed when the process was reaped
	exitErr        error         // the exit status; valid once done is closed
	mu             sync.Mutex    // held while the pid is used or released
	reaped         bool          // the pid may belong to another process
	abort          chan error    // a reason to kill the process
	copied         int64         // bytes of output
	tail           tail
	copying        sync.WaitGroup
}

// otherBinary is the path that Use has set.
var otherBinary atomic.Pointer[string]

// Use makes workers start from another build of this program. Tests with the race detector call it, because the
// detector needs more memory than a worker may use.
func Use(path string) { otherBinary.Store(&path) }

func binary() string {
	if p := otherBinary.Load(); p != nil {
		return *p
	}
	return ownBinary()
}

// start starts a worker process, on a thread that lives as long as the process: the kernel sends the parent-death
// signal when the thread ends.
func start(isolated bool) (*process, error) {
	p := &process{done: make(chan struct{}), abort: make(chan error, 1)}
	cmd := exec.Command(binary(), argument, awaits) //nolint:noctx // run kills the whole group when ctx ends
	cmd.Args[0] = "mcp-funnel"
	cmd.Env = environment()
	cmd.Dir = workDir
	cmd.SysProcAttr = attributes(isolated)
	p.cmd = cmd

	var theirs []*os.File // the child's ends
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
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
		close(p.done)
	}()
	if err := <-started; err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// discard ends a worker that has no job.
func (p *process) discard() {
	p.kill()
	p.close()
}

// kill kills the worker and all processes that the worker started, and waits for its end, at most killTimeout.
func (p *process) kill() {
	p.mu.Lock()
	if !p.reaped {
		killGroup(p.cmd.Process)
	}
	_ = p.cmd.Process.Kill() // os.Process checks whether the process has ended
	p.mu.Unlock()
	select {
	case <-p.done:
	case <-time.After(killTimeout):
	}
}

// reap waits for the end of the worker and kills the rest of its process group while the pid still belongs to it.
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

// readOutput passes the output to write until its end. size is the size of its buffer in bytes.
func (p *process) readOutput(r *os.File, size int, write func([]byte) error) {
	buf := make([]byte, size)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := write(buf[:n]); err != nil {
				p.abort <- err
				// Discard the rest, so that the worker does not block on a full pipe until it is killed.
				write = func([]byte) error { return nil }
			}
		}
		if err != nil {
			return
		}
	}
}

// copyOutput copies output up to limit bytes in all, and returns ErrOutput at the first byte beyond; 0 is no limit.
func (p *process) copyOutput(b []byte, limit int64, out io.Writer) error {
	var exceeded error
	if limit > 0 && p.copied+int64(len(b)) > limit {
		b, exceeded = b[:limit-p.copied], ErrOutput
	}
	p.copied += int64(len(b))
	if _, err := out.Write(b); err != nil {
		return err
	}
	return exceeded
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
	default: // an error of the caller's writer
		return cause
	}
	select {
	case <-p.done:
	default:
		return e // the process was killed but hangs in the kernel
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
