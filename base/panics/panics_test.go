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
