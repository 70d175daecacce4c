package linesearch

import (
	"bytes"
	"context"
	"io"
	"slices"
)

// lineScan searches a text block by block:
//
//	read ── a block of whole lines ─► finder ─► matching lines ─► emitter
//	  └──── 1 MiB without a line end ─► scanLongLine (long.go)
type lineScan struct {
	m   *Matcher
	ctx context.Context
	out *emitter

	src      io.Reader
	readerAt sizedReaderAt // reads any part of the same text; nil if the text can be read only once
	eof      bool

	buf  []byte // buf[:fill] was read but not searched yet
	fill int
	base int64 // offset of buf[0] in the text
	line int64 // number of the line at buf[0]

	f    *finder
	hits hits   // hits of the current block
	tail []Line // the last lines before buf[0], with copied Text: context of a match in the next block
}

// progress reports the number of bytes searched.
func (s *lineScan) progress(done int64) {
	if s.out.Progress != nil {
		s.out.Progress(done)
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

// discard drops the first n bytes of the buffer. They were searched, and s.line counts their lines.
func (s *lineScan) discard(n int) {
	s.base += int64(n)
	s.fill = copy(s.buf, s.buf[n:s.fill])
}

// scanBlock searches whole lines. The last line of the text may lack its newline.
func (s *lineScan) scanBlock(b []byte) error {
	s.hits = hits{at: s.hits.at[:0]}
	if err := s.f.find(b, &s.hits); err != nil {
		return err
	}
	return s.emitBlock(b, &s.hits)
}

// emitBlock counts the lines and matches of a block, and emits the matches and their context.
func (s *lineScan) emitBlock(b []byte, h *hits) error {
	s.out.totals.Letters = s.out.totals.Letters || h.letters
	pos, emitted := 0, 0
	for ; emitted < len(h.at) && !s.out.quiet; emitted++ {
		at := h.at[emitted]
		start, next := pos+lastNewline(b[pos:at])+1, int(at)+1
		if err := s.passUnmatched(b, pos, start); err != nil {
			return err
		}
		if err := s.passLine(b, start, s.m.text(b[start:next]), !s.out.Invert); err != nil {
			return err
		}
		pos = next
	}
	if !s.out.quiet {
		if pos == 0 && h.lines > 0 && s.out.contextLeft == 0 && !s.out.Invert {
			s.line += h.lines
		} else if err := s.passUnmatched(b, pos, len(b)); err != nil {
			return err
		}
		s.saveContext(b)
		return nil
	}
	lines, matches := h.lines, int64(len(h.at)-emitted)
	if lines == 0 || pos > 0 {
		lines = countLines(b[pos:])
	}
	s.line += lines
	if s.out.Invert {
		matches = lines - matches
	}
	s.out.totals.Matches += matches
	return nil
}

// passUnmatched counts lines that the pattern does not match. It emits all of them if Options.Invert is set, else those
// due as context.
func (s *lineScan) passUnmatched(b []byte, from, to int) error {
	for from < to && (s.out.Invert || s.out.contextLeft > 0) {
		next := lineEnd(b, from)
		if err := s.passLine(b, from, s.m.text(b[from:next]), s.out.Invert); err != nil {
			return err
		}
		from = next
	}
	s.line += countLines(b[from:to])
	return nil
}

// passLine counts the line that starts at b[start], and emits the line if it is a match or due as context.
func (s *lineScan) passLine(b []byte, start int, text []byte, match bool) error {
	n := s.line
	s.line++
	if !match {
		if s.out.contextLeft == 0 {
			return nil
		}
		s.out.contextLeft--
		return s.out.emit(s.makeLine(n, start, text))
	}
	if s.out.quiet {
		return s.out.match(Line{})
	}
	if err := s.emitBefore(b, start, n); err != nil {
		return err
	}
	l := s.makeLine(n, start, text)
	if l.Cut() > 0 && !s.out.Invert { // show the window around the match instead of the first one
		from, _, _, err := s.m.Find(s.ctx, text)
		if err != nil {
			return err
		}
		l.Column = int64(from) + 1
		l.Text, l.At = Window(text, from, s.out.Window)
	}
	return s.out.match(l)
}

// countLines returns the number of lines in b; the last line may lack its newline.
func countLines(b []byte) int64 {
	n := int64(bytes.Count(b, newline))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// makeLine returns the line with number n, which starts at b[start]. A long line is truncated to its first window.
func (s *lineScan) makeLine(n int64, start int, text []byte) Line {
	l := Line{Number: n, End: n, Offset: s.base + int64(start), Size: int64(len(text))}
	l.Text, l.At = Window(text, 0, s.out.Window)
	return l
}

// emitBefore emits the context due before line n, which starts at b[start].
func (s *lineScan) emitBefore(b []byte, start int, n int64) error {
	due := int(s.out.before(n))
	if due <= 0 {
		return nil
	}
	lines := s.linesBefore(b, start, n, due)
	for _, l := range slices.Concat(s.tail[max(0, len(s.tail)-due+len(lines)):], lines) {
		if err := s.out.emit(l); err != nil {
			return err
		}
	}
	return nil
}

// linesBefore returns the last lines of b[:end], at most limit lines. n is the number of the line after them.
func (s *lineScan) linesBefore(b []byte, end int, n int64, limit int) (lines []Line) {
	for end > 0 && len(lines) < limit {
		start := lastNewline(b[:end-1]) + 1
		n--
		lines = append(lines, s.makeLine(n, start, s.m.text(b[start:end])))
		end = start
	}
	slices.Reverse(lines)
	return lines
}

// saveContext copies the last lines of a block, as context for the next block.
func (s *lineScan) saveContext(b []byte) {
	if s.out.Before == 0 || s.eof && len(b) == s.fill {
		return
	}
	for _, l := range s.linesBefore(b, len(b), s.line, s.out.Before) {
		l.Text = bytes.Clone(l.Text)
		s.tail = appendLast(s.tail, l, s.out.Before)
	}
}

// appendLast appends v to a list that holds at most n values, and drops the first value if the list is full.
func appendLast[T any](list []T, v T, n int) []T {
	if len(list) >= n {
		list = append(list[:0], list[len(list)-n+1:]...)
	}
	return append(list, v)
}
