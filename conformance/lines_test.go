package conformance

import (
	"bytes"
	"sync"
)

// lineBuffer holds what a program says, and finds the first word after a mark in it.
type lineBuffer struct {
	mark  []byte
	found chan string

	mu   sync.Mutex
	text bytes.Buffer
	told bool
}

func newLineBuffer(mark string) *lineBuffer {
	return &lineBuffer{mark: []byte(mark), found: make(chan string, 1)}
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p)
	if b.told {
		return len(p), nil
	}
	if _, rest, ok := bytes.Cut(b.text.Bytes(), b.mark); ok {
		if end := bytes.IndexAny(rest, " ;\n"); end >= 0 {
			b.told = true
			b.found <- string(rest[:end])
		}
	}
	return len(p), nil
}

func (b *lineBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
