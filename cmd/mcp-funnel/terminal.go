package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
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
	_, _ = fmt.Fprint(b.w, wipe+b.what+": "+barText(done, total, inLine(message), now.Sub(b.start)))
}

// wipe goes to the beginning of the line and clears it.
const wipe = "\r\x1b[K"

// barText says how far the work is: "[######    ]  25 %  2.5 MiB of 10.0 MiB  1.2 MiB/s  2s", or without a total what was done so far.
func barText(done, total int64, message string, elapsed time.Duration) string {
	number := func(n int64) string { return fmt.Sprint(n) }
	message = strings.TrimPrefix(message, number(done)) // some say themselves how many
	if what, bytes := strings.CutPrefix(message, "bytes"); bytes {
		number, message = bytesText, what
	}
	amount := number(done)
	if total > 0 {
		const width = 24
		part := min(max(done, 0), total)
		amount = fmt.Sprintf("[%-*s] %3.0f %%  %s of %s", width, dots[:int(float64(part)/float64(total)*width)], 100*float64(part)/float64(total), amount, number(total))
	}
	if message = strings.TrimSpace(message); message != "" {
		amount += " " + message
	}
	return fmt.Sprintf("%s  %s/s  %s", amount, number(int64(float64(done)/max(elapsed.Seconds(), 0.001))), elapsed.Round(100*time.Millisecond))
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
		_, _ = fmt.Fprint(b.w, wipe)
	}
}

// inLine is what data says, a name for example, in a line for people: no newline or tab of it makes a row or a column, and
// nothing of it acts on a terminal.
func inLine(s string) string { return tools.VisibleName(strings.ReplaceAll(s, "\t", `\x09`)) }

// writeJSON writes a value as JSON, in which what would be hidden or act on a terminal is escaped.
func writeJSON(w io.Writer, v any, indent string) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, content.Visible(b.String(), true))
	return err
}

// observationsText is a number of them.
func observationsText(n int64) string {
	if n == 1 {
		return "1 observation"
	}
	return fmt.Sprintf("%d observations", n)
}

// bytesText is a size as people read it: 1.5 MiB.
func bytesText(n int64) string {
	const units = "KMGT"
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	v, u := float64(n)/(1<<10), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}

// shortTime is a duration as people read it.
func shortTime(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
