//go:build unix

package worker

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// Output left in the pipe when its writer has ended is read, even if the reader comes after the deadline.
func TestDrainTakesTheRest(t *testing.T) {
	for range 3 {
		drained(t)
	}
}

func drained(t *testing.T) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789"), 3000) // a pipe holds it
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	p := &process{stdout: r, abort: make(chan error, 1)}
	p.ended.Store(true)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = r.SetReadDeadline(time.Now())
			}
		}
	}()
	var got []byte
	p.copying.Add(1)
	p.readOutput(r, 1, func(b []byte) error { got = append(got, b...); return nil })
	close(stop)
	<-stopped
	_ = r.Close()
	if !bytes.Equal(got, text) {
		t.Errorf("%d bytes of %d", len(got), len(text))
	}
}
