package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// stopped is ctx, ended by the first signal; the second kills as usual.
func stopped(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

const (
	barAfter = time.Second            // of work before it is drawn: a bar that flashes by helps nobody
	barEvery = 200 * time.Millisecond // from one drawing to the next
)

// bar draws progress on one line of a terminal; elsewhere it does nothing.
type bar struct {
	w     io.Writer // nil: not a terminal
	what  string
	mu    sync.Mutex
	start time.Time
	drawn time.Time
}

func newBar(w io.Writer, what string) *bar {
	b := &bar{what: what, start: time.Now()}
	if f := fileOf(w); f != nil && isTerminal(f) {
		b.w = f
	}
	return b
}

// progress may be called from any goroutine, as often as one likes.
func (b *bar) progress(done, total int64, message string) {
	if b.w == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.start) < barAfter || now.Sub(b.drawn) < barEvery {
		return
	}
	b.drawn = now
	elapsed := now.Sub(b.start)
	amount := fmt.Sprintf("%d", done)
	rate := fmt.Sprintf("%.0f/s", float64(done)/elapsed.Seconds())
	if message == "bytes" {
		amount, rate, message = bytesText(done), bytesText(int64(float64(done)/elapsed.Seconds()))+"/s", ""
	}
	if total > 0 {
		const width = 24
		full := int(min(done, total) * width / total)
		amount = fmt.Sprintf("[%-*s] %3d %%  %s of %d", width, dots[:full], min(done, total)*100/total, amount, total)
	}
	_, _ = fmt.Fprintf(b.w, "\r\x1b[K%s: %s %s  %s  %s", b.what, amount, message, rate, shortTime(elapsed))
}

const dots = "########################"

// end wipes the line.
func (b *bar) end() {
	if b.w == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.drawn.IsZero() {
		_, _ = fmt.Fprint(b.w, "\r\x1b[K")
	}
}
