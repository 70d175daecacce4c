package panics

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAPanicIsRaisedWhereItIsWaitedFor(t *testing.T) {
	var err error
	Into(&err, func() { err = io.EOF })
	if Again(err) != io.EOF { //nolint:errorlint // the error itself
		t.Errorf("an error came back as %v", err)
	}
	done := make(chan error)
	go func() {
		var err error
		Into(&err, func() { panic("a defect") })
		done <- err
	}()
	err = <-done
	defer func() {
		c, ok := recover().(*Caught)
		if !ok || c.Value != "a defect" || !strings.Contains(c.Error(), "TestAPanicIsRaised") {
			t.Errorf("recovered %v", c)
		}
	}()
	_ = Again(errors.Join(io.EOF, err))
	t.Error("nothing was raised")
}

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		done := make([]int, n)
		Each(n, 4, func(i int) { done[i]++ })
		for i, times := range done {
			if times != 1 {
				t.Errorf("%d of %d was done %d times", i, n, times)
			}
		}
	}
	defer func() {
		if c, ok := recover().(*Caught); !ok || c.Value != "a defect" {
			t.Errorf("recovered %v", c)
		}
	}()
	Each(100, 4, func(i int) {
		if i == 50 {
			panic("a defect")
		}
	})
	t.Error("nothing was raised")
}
