package child

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// memoryWords are what the Go runtime says when an allocation fails, at the hard limit or on the stack. A new
// thread that gets no memory dies of a bare SIGSEGV in the runtime, with no Go panic before it.
var memoryWords = []string{"out of memory", "cannot allocate memory", "stack overflow", "stack exceeds", "failed to create new OS thread", "SIGSEGV: segmentation violation\nPC="}

// tail keeps the first and the last bytes of what a worker said on stderr: the
// runtime says what it died of first and then a lot, a worker says its error last.
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

func (t *tail) says(words []string) bool {
	for _, w := range words {
		if bytes.Contains(t.first, []byte(w)) || bytes.Contains(t.last, []byte(w)) {
			return true
		}
	}
	return false
}

// line is what the Go runtime says it died of, else the last line that says
// something; at most 200 bytes.
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
	return clip(strings.ToValidUTF8(last, "\uFFFD"), 200)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
