package shell

import (
	"bytes"
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/delta"
)

// maxTail is how many of the last bytes of each stream are held, to find out why a command failed.
const maxTail = 8 << 10

// summary is what a job remembers of its output.
type summary struct {
	bytes, lines int64
	cut          int64  // bytes beyond the limit of the command's output, which were dropped
	tail         []byte // of both streams
	text         delta.Text
	found        findings
	errors       errorLines
}

func newSummary() summary { return summary{text: delta.NewText(false)} }

func (s *summary) add(c chunk) {
	s.bytes += int64(len(c.data))
	s.lines += int64(bytes.Count(c.data, []byte{'\n'}))
	s.tail = append(s.tail, c.data[max(0, len(c.data)-maxTail):]...)
	if drop := len(s.tail) - maxTail; drop > 0 {
		s.tail = s.tail[:copy(s.tail, s.tail[drop:])]
	}
	s.text.Add(c.data)
	if c.stderr {
		s.errors.add(c.data, s.found.line)
	}
	s.found.add(c.data)
}

// progress returns how far the command is, in one line.
func (s *summary) progress() string {
	last := bytes.TrimRight(s.tail, "\r\n \t")
	last = last[bytes.LastIndexAny(last, "\r\n")+1:]
	return fmt.Sprintf("%s, %s: %s", content.Plural(s.bytes, "byte", "bytes"), content.Plural(s.lines, "line", "lines"),
		content.ClipBytes(string(last), 120))
}

// errorLines are the first lines of standard error. Those of a failed command are shown first.
type errorLines struct {
	lines []string
	count int64
	bytes int64
	open  []byte // the line that has not ended, as far as it is held: a secret in it is masked as a whole
	at    int64  // the number of the line in which it began
}

// Numbers of lines of standard error that are shown first: all of a few, else some.
const (
	maxErrorLines   = 5
	firstErrorLines = 3
)

// add takes a chunk of standard error that begins in the line behind the given one.
func (e *errorLines) add(b []byte, before int64) {
	e.bytes += int64(len(b))
	for line := range bytes.Lines(b) {
		before++
		if len(e.open) == 0 {
			e.at = before
		}
		e.open = append(e.open, line[:min(len(line), maxTail-len(e.open))]...)
		if line[len(line)-1] == '\n' {
			e.end()
		}
	}
}

// end adds the open line.
func (e *errorLines) end() {
	text := bytes.TrimSpace(content.TerminalLine(bytes.TrimRight(e.open, "\n")))
	e.open = e.open[:0]
	if len(text) == 0 {
		return
	}
	if e.count++; len(e.lines) < maxErrorLines {
		e.lines = append(
			e.lines, fmt.Sprintf("standard error, line %d: %s", e.at, content.ClipBytes(string(text), findingWidth)),
		)
	}
}

// close returns the lines. Of many, it returns the first ones and how many more there are; none if all bytes of the
// output are standard error, because the head of the output has them then.
func (e *errorLines) close(all int64) []string {
	e.end()
	switch {
	case e.count <= maxErrorLines:
		return e.lines
	case e.bytes == all:
		return nil
	}
	more := content.Plural(e.count-firstErrorLines, "more line", "more lines")
	return append(e.lines[:firstErrorLines:firstErrorLines], "… and "+more+" of standard error")
}
