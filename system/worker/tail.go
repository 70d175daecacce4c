package worker

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// memoryWords are parts of the messages that the Go runtime prints when an allocation fails or the stack is too large.
// If there is no memory for a new thread, the runtime dies of a SIGSEGV, without a Go panic.
var memoryWords = []string{
	"out of memory", "cannot allocate memory", "stack overflow", "stack exceeds",
	"failed to create new OS thread", "pthread_create failed", "SIGSEGV: segmentation violation\nPC=",
}

// tail keeps the first and the last 4 KiB of stderr: the runtime prints its cause of death first and then goroutines, a
// worker function prints its error last.
type tail struct {
	first, last []byte
}

const tailSize = 4 << 10

func (t *tail) write(b []byte) {
	if room := tailSize - len(t.first); room > 0 {
		n := min(room, len(b))
		t.first = append(t.first, b[:n]...)
		b = b[n:]
	}
	t.last = append(t.last, b...)
	if over := len(t.last) - tailSize; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
}

func (t *tail) containsAny(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return bytes.Contains(t.first, []byte(w)) || bytes.Contains(t.last, []byte(w))
	})
}

// line returns the runtime's cause of death, else the last line that is not empty; at most 200 bytes.
func (t *tail) line() string {
	last := ""
	for l := range strings.Lines(string(t.first) + string(t.last)) {
		if l = strings.TrimSpace(l); l != "" {
			last = l
		}
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") || strings.HasPrefix(l, "SIG") {
			break
		}
	}
	return content.ClipEnd(strings.ToValidUTF8(last, "\uFFFD"), 200)
}
