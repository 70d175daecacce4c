package stdio

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

// A process that serves on stdio ends when its client does. The end of its input does not show that reliably: a
// killed client may have left the pipe open in another child.

// Causes with which a [Lifetime]'s context ends, besides signals.
var (
	ErrParentGone = errors.New("the parent process is gone")
	ErrOutGone    = errors.New("the output has no reader any more")
)

// SignalError is the cause if a signal ended the context.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return fmt.Sprintf("signal: %v", e.Signal) }

// pollInterval is how often ends are checked that this system cannot wait for. It bounds how late a dead client is
// noticed, and leaves the rest of the second for clean-up.
const pollInterval = 100 * time.Millisecond

// Lifetime configures which events end this process.
type Lifetime struct {
	Parent bool          // ends when the parent process has ended
	Out    *os.File      // ends when this has no reader any more; nil: not checked
	Force  time.Duration // from the cause to the forced exit; default 800 ms
	Exit   func(int)     // default os.Exit

	// Draining is closed on the first SIGTERM, which then ends the context only after Drain, as another signal does at once.
	// nil: it is not, and SIGTERM ends the context.
	Draining chan<- struct{}
	Drain    time.Duration
}

// repeated is how long after the first signal others count as the same: terminals and service managers send one to all
// processes of a group, while each launcher (npx, the script of the npm package) passes on what it gets.
const repeated = 200 * time.Millisecond

// Context returns a context that ends, with its cause, on SIGTERM, SIGINT, SIGHUP or a configured event. Then the
// process has Force to end by itself; after that, or on a second signal, Exit(1) is called. stop ends the context and
// stops watching.
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
		if !signal.Ignored(s) { // as nohup does for SIGHUP
			signal.Notify(signals, s)
		}
	}
	surviveBrokenPipes()

	stopped := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.watch(signals, stopped, end)
	}()
	var once sync.Once
	return ctx, func() {
		once.Do(func() {
			// A copy of the signal may still come while the process closes; it must not kill it.
			time.AfterFunc(repeated, func() { signal.Stop(signals) })
			close(stopped)
			<-done
			end(context.Canceled)
		})
	}
}

// watch waits for a cause and ends the context; after Force or a second signal it calls Exit.
func (l Lifetime) watch(signals <-chan os.Signal, stopped <-chan struct{}, end context.CancelCauseFunc) {
	gone := make(chan error, 1)
	if l.Parent || l.Out != nil {
		go func() { gone <- awaitGone(l, stopped) }()
	}
	var cause error
	select {
	case s := <-signals:
		cause = &SignalError{s}
	case cause = <-gone:
	case <-stopped:
	}
	first := time.Now()
	if s := (*SignalError)(nil); l.Draining != nil && errors.As(cause, &s) && s.Signal == syscall.SIGTERM {
		close(l.Draining)
		if !wait(l.Drain, first, signals, stopped) {
			return
		}
		first = time.Now() // of the signal that ended the drain, which has copies too
	}
	if cause == nil {
		return
	}
	end(cause)
	if wait(l.Force, first, signals, stopped) {
		l.Exit(1)
	}
}

// wait waits for a time or, if that comes before, a signal that does not repeat the first one. It returns false if
// stopped is closed.
func wait(t time.Duration, first time.Time, signals <-chan os.Signal, stopped <-chan struct{}) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	for {
		select {
		case <-signals:
			if time.Since(first) >= repeated {
				return true
			}
		case <-timer.C:
			return true
		case <-stopped:
			return false
		}
	}
}
