package linesearch

import (
	"bytes"
	"context"
	"io"
)

// lineScan searches a text block by block:
//
//	fill ── a block of whole lines ─► finder ─► matching lines ─► emitter
//	  └──── 1 MiB without a line end ─► scanLongLine (long.go)
type lineScan struct {
	m   *Matcher
	ctx context.Context
	t   *emitter

	src   io.Reader
	again sizedReaderAt // the same text for reading again; nil if it can be read only once
	eof   bool

	until int64  // offset from which several workers take over; 0: never
	buf   []byte // buf[:fill] was read but not searched yet
	fill  int
	base  int64 // offset of buf[0] in the text
	line  int64 // number of the line at buf[0]

	f    *finder
	hits hits   // hits of the current block
	tail []Line // the last lines before buf[0], for context, with Text copied
}

func (s *lineScan) progress(done int64) {
	if s.t.o.Progress != nil {
		s.t.o.Progress(done)
	}
}

// read fills the buffer, or reads to the end of the text.
func (s *lineScan) read() error {
	for idle := 0; s.fill < len(s.buf) && !s.eof; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		n, err := s.src.Read(s.buf[s.fill:])
		s.fill += n
		switch {
		case err == io.EOF:
			s.eof = true
		case err != nil:
			return err
		case n > 0:
			idle = 0
		default:
			if idle++; idle == 100 {
				return io.ErrNoProgress
			}
		}
	}
	return s.ctx.Err()
}

// discard drops the first n bytes, which were searched. s.line already counts their lines.
func (s *lineScan) discard(n int) {
	s.base += int64(n)
	s.fill = copy(s.buf, s.buf[n:s.fill])
}

// block searches whole lines; the last line of the text may lack its newline.
func (s *lineScan) block(b []byte) error {
	s.hits = hits{only: s.t.quiet, at: s.hits.at[:0]}
	if err := s.f.find(b, &s.hits); err != nil {
		return err
	}
	return s.emit(b, &s.hits)
}

// emit counts the lines of a block, and emits the matches and their context.
func (s *lineScan) emit(b []byte, h *hits) error {
	first, pos, told := s.line, 0, int64(0)
	for _, at := range h.at {
		if s.t.quiet {
			break
		}
		start, next := pos+lastNewline(b[pos:at])+1, int(at)+1
		if err := s.passUnmatched(b, pos, start); err != nil {
			return err
		}
		if err := s.passLine(b, start, next, s.m.text(b[start:next]), !s.t.o.Invert); err != nil {
			return err
		}
		pos = next
		told++
	}
	if !s.t.quiet {
		if pos == 0 && h.lines > 0 && s.t.after == 0 && !s.t.o.Invert {
			s.line += h.lines
		} else if err := s.passUnmatched(b, pos, len(b)); err != nil {
			return err
		}
		s.saveContext(b, first)
		return nil
	}
	n, hits := h.lines, h.n-told
	if n == 0 || pos > 0 {
		n = countLines(b[pos:])
	}
	s.line += n
	if s.t.o.Invert {
		hits = n - hits
	}
	s.t.totals.Matches += hits
	return nil
}

// passUnmatched processes lines that the pattern does not match; with Invert they are emitted.
func (s *lineScan) passUnmatched(b []byte, from, to int) error {
	if !s.t.o.Invert {
		return s.skipLines(b, from, to)
	}
	for from < to {
		next := lineEnd(b, from)
		if err := s.passLine(b, from, next, s.m.text(b[from:next]), true); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// passLine emits the line b[start:next] if the line is a match or is due as context.
func (s *lineScan) passLine(b []byte, start, next int, text []byte, hit bool) error {
	n := s.line
	s.line++
	if !hit {
		if s.t.after == 0 {
			return nil
		}
		s.t.after--
		return s.t.emit(s.context(n, start, text))
	}
	if s.t.quiet {
		return s.t.match(Line{})
	}
	if err := s.before(b, start, n); err != nil {
		return err
	}
	l := Line{Number: n, End: n, Offset: s.base + int64(start), Size: int64(len(text)), Text: text}
	if len(text) > s.t.o.Window {
		if !s.t.o.Invert {
			from, _, _, err := s.m.find(s.ctx, text)
			if err != nil {
				return err
			}
			l.Column = int64(from) + 1
		}
		l.Text, l.At = Window(text, int(max(l.Column-1, 0)), s.t.o.Window)
	}
	return s.t.match(l)
}

// skipLines counts lines that are not matches, and emits the lines still due as context.
func (s *lineScan) skipLines(b []byte, from, to int) error {
	for from < to && s.t.after > 0 {
		next := lineEnd(b, from)
		if err := s.passLine(b, from, next, s.m.text(b[from:next]), false); err != nil {
			return err
		}
		from = next
	}
	s.line += countLines(b[from:to])
	return nil
}

// countLines returns the number of lines in b; the last line may lack its newline.
func countLines(b []byte) int64 {
	n := int64(bytes.Count(b, newline))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// context returns the context line with number n, which starts at b[start].
func (s *lineScan) context(n int64, start int, text []byte) Line {
	l := Line{Number: n, End: n, Offset: s.base + int64(start), Size: int64(len(text))}
	l.Text, l.At = Window(text, 0, s.t.o.Window)
	return l
}

// before emits the context due before line n, which starts at b[start].
func (s *lineScan) before(b []byte, start int, n int64) error {
	due := int(s.t.before(n))
	if due <= 0 {
		return nil
	}
	starts := make([]int, 0, due)
	for at := start; at > 0 && len(starts) < due; {
		at = lastNewline(b[:at-1]) + 1
		starts = append(starts, at)
	}
	for _, l := range s.tail[max(0, len(s.tail)-(due-len(starts))):] {
		if err := s.t.emit(l); err != nil {
			return err
		}
	}
	for i := len(starts) - 1; i >= 0; i-- {
		end := start
		if i > 0 {
			end = starts[i-1]
		}
		if err := s.t.emit(s.context(n-int64(i)-1, starts[i], s.m.text(b[starts[i]:end]))); err != nil {
			return err
		}
	}
	return nil
}

// saveContext copies the last lines of a block, as context for the next block. first is the number of the block's
// first line.
func (s *lineScan) saveContext(b []byte, first int64) {
	keep := s.t.o.Before
	if keep == 0 || s.t.quiet || s.eof && len(b) == s.fill {
		return
	}
	var lines []Line
	for at, n := len(b), s.line-1; at > 0 && len(lines) < keep && n >= first; n-- {
		end := at
		at = lastNewline(b[:at-1]) + 1
		l := s.context(n, at, s.m.text(b[at:end]))
		l.Text = bytes.Clone(l.Text)
		lines = append(lines, l)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		s.pushContext(lines[i])
	}
}

// pushContext adds a line to s.tail, and drops the oldest line if the tail is full.
func (s *lineScan) pushContext(l Line) {
	if len(s.tail) >= s.t.o.Before {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-s.t.o.Before+1:]...)
	}
	s.tail = append(s.tail, l)
}
