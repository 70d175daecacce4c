// Package panics carries a panic of one goroutine to another, as an error. A panic that is not recovered would end the
// process with all its calls.
//
// The goroutine that waits for the work panics again, so that only its call ends.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Caught is a recovered panic.
type Caught struct {
	Value any    // as passed to the first panic
	Stack []byte // stack trace of the goroutine that panicked
}

func (c *Caught) Error() string { return fmt.Sprintf("%v\n%s", c.Value, c.Stack) }

// Into runs work, and sets err to a [Caught] if it panics.
func Into(err *error, work func()) {
	defer func() {
		if p := recover(); p != nil {
			*err = &Caught{Value: p, Stack: debug.Stack()}
		}
	}()
	work()
}

// Again panics with the [Caught] that err wraps; if there is none, it returns err.
func Again(err error) error {
	if c, ok := errors.AsType[*Caught](err); ok {
		panic(c)
	}
	return err
}

// Each calls work(0) … work(n-1) in up to so many goroutines, waits for them, and panics again if one of them did.
func Each(n, goroutines int, work func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	failures := make([]error, min(n, goroutines))
	for g := range failures {
		group.Go(func() {
			Into(&failures[g], func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					work(i)
				}
			})
		})
	}
	group.Wait()
	_ = Again(errors.Join(failures...))
}
