package worker

import (
	"bytes"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// memoryWords are in the messages of the Go runtime when an allocation fails, at the hard limit or on the stack. A new
// thread without memory dies of a SIGSEGV in the runtime, without a Go panic.
var memoryWords = []string{
	"out of memory", "cannot allocate memory", "stack overflow", "stack exceeds",
	"failed to create new OS thread", "SIGSEGV: segmentation violation\nPC=",
}

// tail keeps the first and the last 4 KiB of stderr: the runtime reports its cause of death first and then a lot more,
// a worker reports its error last.
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
	for _, w := range words {
		if bytes.Contains(t.first, []byte(w)) || bytes.Contains(t.last, []byte(w)) {
			return true
		}
	}
	return false
}

// line returns the runtime's cause of death, else the last line that is not empty; at most 200 bytes.
func (t *tail) line() string {
	last := ""
	for l := range strings.Lines(string(t.first) + string(t.last)) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") || strings.HasPrefix(l, "SIG") {
			last = l
			break
		}
		if l != "" {
			last = l
		}
	}
	return content.ClipEnd(strings.ToValidUTF8(last, "\uFFFD"), 200)
}
