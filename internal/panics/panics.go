// Package panics carries a panic of one goroutine to another, as an error: what no one recovers ends the process, and with it every
// other call.
//
// It is not a logger and not a way to go on: whoever waits for the goroutine raises the panic again, where a call can end with it.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Caught is a panic that was recovered.
type Caught struct {
	Value any    // of the first recover
	Stack []byte // of the goroutine that panicked
}

func (c *Caught) Error() string { return fmt.Sprintf("%v\n%s", c.Value, c.Stack) }

// Into runs work, and stores a panic of it in err.
func Into(err *error, work func()) {
	defer func() {
		if p := recover(); p != nil {
			*err = &Caught{Value: p, Stack: debug.Stack()}
		}
	}()
	work()
}

// Again panics with what was caught, where err is a [Caught]; else it returns err.
func Again(err error) error {
	if c := (*Caught)(nil); errors.As(err, &c) {
		panic(c)
	}
	return err
}
