package linesearch

import (
	"bytes"
	"context"
	"io"
	"slices"
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

	buf  []byte // buf[:fill] was read but not searched yet
	fill int
	base int64 // offset of buf[0] in the text
	line int64 // number of the line at buf[0]

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
	for s.fill < len(s.buf) && !s.eof {
		n, err := s.readSome(s.buf[s.fill:])
		s.fill += n
		if err != nil {
			return err
		}
	}
	return s.ctx.Err()
}

// readSome reads at least one byte, or sets s.eof. It checks the context.
func (s *lineScan) readSome(b []byte) (int, error) {
	for range 100 {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		n, err := s.src.Read(b)
		if err == io.EOF {
			s.eof, err = true, nil
		}
		if n > 0 || s.eof || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// discard drops the first n bytes, which were searched. s.line already counts their lines.
func (s *lineScan) discard(n int) {
	s.base += int64(n)
	s.fill = copy(s.buf, s.buf[n:s.fill])
}

// block searches whole lines; the last line of the text may lack its newline.
func (s *lineScan) block(b []byte) error {
	s.hits = hits{at: s.hits.at[:0]}
	if err := s.f.find(b, &s.hits); err != nil {
		return err
	}
	return s.emit(b, &s.hits)
}

// emit counts the lines of a block, and emits the matches and their context.
func (s *lineScan) emit(b []byte, h *hits) error {
	pos, emitted := 0, 0
	for ; emitted < len(h.at) && !s.t.quiet; emitted++ {
		at := h.at[emitted]
		start, next := pos+lastNewline(b[pos:at])+1, int(at)+1
		if err := s.passUnmatched(b, pos, start); err != nil {
			return err
		}
		if err := s.passLine(b, start, next, s.m.text(b[start:next]), !s.t.o.Invert); err != nil {
			return err
		}
		pos = next
	}
	if !s.t.quiet {
		if pos == 0 && h.lines > 0 && s.t.after == 0 && !s.t.o.Invert {
			s.line += h.lines
		} else if err := s.passUnmatched(b, pos, len(b)); err != nil {
			return err
		}
		s.saveContext(b)
		return nil
	}
	n, hits := h.lines, int64(len(h.at)-emitted)
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
			from, _, _, err := s.m.Find(s.ctx, text)
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
	lines := s.linesBefore(b, start, n, due)
	for _, l := range slices.Concat(s.tail[max(0, len(s.tail)-due+len(lines)):], lines) {
		if err := s.t.emit(l); err != nil {
			return err
		}
	}
	return nil
}

// linesBefore returns the last lines of b[:end], at most most of them. n is the number of the line after them.
func (s *lineScan) linesBefore(b []byte, end int, n int64, most int) (lines []Line) {
	for end > 0 && len(lines) < most {
		start := lastNewline(b[:end-1]) + 1
		n--
		lines = append(lines, s.context(n, start, s.m.text(b[start:end])))
		end = start
	}
	slices.Reverse(lines)
	return lines
}

// saveContext copies the last lines of a block, as context for the next block.
func (s *lineScan) saveContext(b []byte) {
	if s.t.o.Before == 0 || s.eof && len(b) == s.fill {
		return
	}
	for _, l := range s.linesBefore(b, len(b), s.line, s.t.o.Before) {
		l.Text = bytes.Clone(l.Text)
		s.tail = appendLast(s.tail, l, s.t.o.Before)
	}
}

// appendLast appends v to a list that holds at most n values, and drops the first value if the list is full.
func appendLast[T any](list []T, v T, n int) []T {
	if len(list) >= n {
		list = append(list[:0], list[len(list)-n+1:]...)
	}
	return append(list, v)
}
