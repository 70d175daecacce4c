package cli

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

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// UntilSignal returns a context that the first signal cancels. Further ones do nothing until stop is called: a launcher
// may pass on what the terminal sends to all.
func UntilSignal(ctx context.Context) (c context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

const (
	barAfter = time.Second            // of work before the bar is drawn, so that it does not flash up for short work
	barEvery = 200 * time.Millisecond // between two drawings
)

// Bar draws progress on one line of a terminal; elsewhere it does nothing.
type Bar struct {
	w     io.Writer // nil: not a terminal
	what  string
	mu    sync.Mutex
	start time.Time
	drawn time.Time
}

// NewBar returns the bar of work that began at a time.
func NewBar(w io.Writer, what string, began time.Time) *Bar {
	b := &Bar{what: what, start: began}
	if IsTerminal(w) {
		b.w = w
	}
	return b
}

// Progress draws the bar, at most once per barEvery. It is safe for concurrent use and cheap.
func (b *Bar) Progress(done, total int64, message string) {
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
	_, _ = fmt.Fprint(b.w, wipe+b.what+": "+barText(done, total, InLine(message), now.Sub(b.start)))
}

// wipe moves to the beginning of the line and clears it.
const wipe = "\r\x1b[K"

// barText describes the progress: "[######    ]  25 %  2.5 MiB of 10.0 MiB  1.2 MiB/s  2s", or only the amount if
// there is no total.
func barText(done, total int64, message string, elapsed time.Duration) string {
	number := func(n int64) string { return fmt.Sprint(n) }
	message = strings.TrimPrefix(message, number(done)) // some messages repeat the number
	if what, bytes := strings.CutPrefix(message, "bytes"); bytes {
		number, message = BytesText, what
	}
	amount := number(done)
	if total > 0 {
		const width = 24
		part := min(max(done, 0), total)
		amount = fmt.Sprintf("[%-*s] %3.0f %%  %s of %s", width, strings.Repeat("#", int(float64(part)/float64(total)*width)),
			100*float64(part)/float64(total), amount, number(total))
	}
	if message = strings.TrimSpace(message); message != "" {
		amount += " " + message
	}
	return fmt.Sprintf("%s  %s/s  %s", amount, number(int64(float64(done)/max(elapsed.Seconds(), 0.001))),
		elapsed.Round(100*time.Millisecond))
}

// End clears the bar's line.
func (b *Bar) End() {
	if b.w == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.drawn.IsZero() {
		_, _ = fmt.Fprint(b.w, wipe)
		b.drawn = time.Time{}
	}
}

// InLine escapes untrusted text, such as a name, for one line of output: its newlines and tabs cannot make rows or
// columns, and its control characters cannot act on the terminal.
func InLine(s string) string { return content.VisibleLine(strings.ReplaceAll(s, "\t", `\x09`)) }

// WriteJSON writes a value as JSON with hidden and terminal control characters escaped.
func WriteJSON(w io.Writer, v any, indent string) error {
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

// ObservationsText returns "1 observation" or "n observations".
func ObservationsText(n int) string { return content.Plural(int64(n), "observation", "observations") }

// BytesText formats a size: 1.5 MiB.
func BytesText(n int64) string {
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

// AgeText formats an age by its largest unit: "5s ago", "3m ago", "2h ago", "6d ago".
func AgeText(age time.Duration) string {
	const day = 24 * time.Hour
	switch age = max(age, 0); {
	case age < time.Minute:
		return fmt.Sprintf("%ds ago", age/time.Second)
	case age < time.Hour:
		return fmt.Sprintf("%dm ago", age/time.Minute)
	case age < 2*day:
		return fmt.Sprintf("%dh ago", age/time.Hour)
	}
	return fmt.Sprintf("%dd ago", age/day)
}
