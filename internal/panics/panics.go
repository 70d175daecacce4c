// Package panics carries a panic of one goroutine to another, as an error. A panic that no goroutine recovers ends the
// process, and with it every other call.
//
// It neither logs nor hides panics: the goroutine that waits for the work panics again, so that the panic ends its call
// only.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Caught is a recovered panic.
type Caught struct {
	Value any    // as passed to the first panic
	Stack []byte // of the goroutine that panicked
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

// Again panics if err is a [Caught], else it returns err.
func Again(err error) error {
	if c := (*Caught)(nil); errors.As(err, &c) {
		panic(c)
	}
	return err
}
