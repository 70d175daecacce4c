package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A process that serves on stdio ends with its client. The end of its input is not enough to know by:
// a client that was killed may have left the pipe open in another child.

// Causes with which a [Lifetime]'s context ends, beside signals.
var (
	ErrParentGone = errors.New("the parent process is gone")
	ErrOutGone    = errors.New("nobody reads the output any more")
)

// SignalError is the cause where a signal ended it.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return fmt.Sprintf("signal: %v", e.Signal) }

// lookEvery is how often parent and output are looked at, two system calls each time: a client that goes without a word is
// missed for no longer, so that the rest of the second is left for those who put away what they have. A death signal (PR_SET_PDEATHSIG) is no
// substitute: it comes when the parent's thread ends, and misses a parent already gone.
const lookEvery = 50 * time.Millisecond

// Lifetime says what ends this process.
type Lifetime struct {
	Parent bool          // the death of the process that started it
	Out    *os.File      // that nobody can read this any more; nil: not looked at
	Force  time.Duration // from the cause to the forced end; 800 ms
	Exit   func(int)     // os.Exit
}

// Context returns a context that ends, with its cause, on SIGTERM, SIGINT or SIGHUP, or one of the
// events asked for. From then on the process has Force to end by itself: then, or on a second
// signal, it is ended with code 1, whatever still runs. stop lets go of all of this.
func (l Lifetime) Context(parent context.Context) (ctx context.Context, stop func()) {
	if l.Force <= 0 {
		l.Force = 800 * time.Millisecond
	}
	if l.Exit == nil {
		l.Exit = os.Exit
	}
	ctx, end := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 4)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	surviveBrokenPipes()

	stopped := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.look(signals, stopped, end)
	}()
	var once sync.Once
	return ctx, func() {
		once.Do(func() {
			signal.Stop(signals)
			close(stopped)
			<-done
			end(context.Canceled)
		})
	}
}

// look waits for a cause, then for the end of what it allows.
func (l Lifetime) look(signals <-chan os.Signal, stopped <-chan struct{}, end context.CancelCauseFunc) {
	gone := func() bool { return false }
	if l.Parent {
		gone = parentGone()
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var cause error
	for cause == nil {
		select {
		case s := <-signals:
			cause = &SignalError{s}
		case <-tick.C:
			switch {
			case gone():
				cause = ErrParentGone
			case l.Out != nil && outGone(l.Out):
				cause = ErrOutGone
			}
		case <-stopped:
			return
		}
	}
	end(cause)
	force := time.NewTimer(l.Force)
	defer force.Stop()
	select {
	case <-signals:
	case <-force.C:
	case <-stopped:
		return
	}
	l.Exit(1)
}
