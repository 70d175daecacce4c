package jsonrpc

import (
	"errors"
	"testing"
	"time"
)

// TestOwnPauseIsNotTheClients has this process stand still for an hour in the middle of a write.
func TestOwnPauseIsNotTheClients(t *testing.T) {
	const limit = 6 * StallPollInterval
	box := NewOutbox(nil)
	box.writing, box.lastProgress = true, time.Now().Add(-time.Hour)
	began := time.Now()
	box.FailWhenStalled(t.Context(), func(time.Duration) time.Duration { return limit }, func() bool { return false })
	if took := time.Since(began); took < limit-StallPollInterval || !errors.Is(box.err, ErrStalled) {
		t.Errorf("%v after %s of %s", box.err, took, limit)
	}
}
