package runes

import "bytes"

// LineCounter counts the lines that are written to it. Text after the last newline is a line. The zero value is ready.
type LineCounter struct {
	newlines int64
	open     bool // the last byte is no newline
}

// Write implements [io.Writer]. It never fails.
func (c *LineCounter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		c.newlines += int64(bytes.Count(p, []byte{'\n'}))
		c.open = p[len(p)-1] != '\n'
	}
	return len(p), nil
}

// Lines returns the number of lines so far.
func (c *LineCounter) Lines() int64 {
	if c.open {
		return c.newlines + 1
	}
	return c.newlines
}
