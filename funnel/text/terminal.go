package text

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// StderrMark begins a line that holds standard error, if an output has lines of both streams.
const StderrMark = "stderr| "

// Terminal returns a text as a terminal would show it at the end: without colours, and each line as it was
// after the last move of the cursor within it. Text without either is returned as it is.
func Terminal(b []byte) []byte {
	if bytes.IndexByte(b, '\r') < 0 && bytes.IndexByte(b, '\x1b') < 0 && bytes.IndexByte(b, '\b') < 0 {
		return b
	}
	var out []byte
	for line := range bytes.Lines(b) {
		end := line[len(bytes.TrimRight(line, "\r\n")):]
		out = append(append(out, content.TerminalLine(line[:len(line)-len(end)])...), end...)
	}
	return out
}

// Terminal returns a line as [Terminal] does. Of a long line, of which only the ends are held, it is the last state.
func (l Line) Terminal() Line {
	if l.Whole() {
		shown := content.TerminalLine(l.Left)
		if bytes.Equal(shown, l.Left) {
			return l
		}
		return LineOf(string(shown))
	}
	if i := bytes.LastIndexByte(bytes.TrimRight(l.Right, "\r"), '\r'); i >= 0 {
		return LineOf(string(content.TerminalLine(l.Right[i+1:])))
	}
	return l
}

// Marked returns a line with a mark before it.
func (l Line) Marked(mark string) Line {
	l.Left = append([]byte(mark), l.Left...)
	l.Chars += int64(len(mark))
	return l
}
