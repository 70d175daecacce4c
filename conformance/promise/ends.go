package promise

import (
	"testing"
	"time"
)

// HangAfter is the time after which a test takes something for hanging: at least ten times what an idle machine needs,
// and less than work takes that grows with the square of a test's input.
const HangAfter = time.Minute

// Ends runs work, which must not call t.FailNow, and fails the test if it does not end within [HangAfter].
func Ends(t testing.TB, work func(), format string, args ...any) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
	case <-time.After(HangAfter):
		t.Fatalf(format+" does not end within "+HangAfter.String(), args...)
	}
}
