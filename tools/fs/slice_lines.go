package fs

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

const (
	// longRow is the longest row that is held: of a longer one only its ends are, so that a line of a gigabyte takes no memory.
	longRow = 1 << 20
	// cheap is how many bytes are read on only to tell a total, when the page is full.
	cheap = 64 << 20
)

// lines shows lines, as sed -n does: they end at a newline, and a carriage return before it belongs to the end.
func (s *slicer) lines(r span) error {
	total, err := s.totalLines(r.last > 0)
	if err != nil {
		return err
	}
	if r.last > 0 && total == 0 {
		return s.past("lines", r, 0)
	}
	asked := r
	r = r.resolve(1, total)
	known, off := s.src.LineOffset(r.from)
	at, passed, err := s.text.skipLines(off, r.from-known)
	if err != nil {
		return err
	}
	if passed < r.from-known { // the text ended before
		if total, err = s.endedAt(known-1+passed, at); err != nil {
			return err
		}
		return s.past("lines", asked, total)
	}
	b := bufio.NewReaderSize(s.text.reader(at), window)
	full, blank := false, true
	number := r.from
	for ; number <= r.to; number++ {
		l, err := readLine(b, at)
		if errors.Is(err, io.EOF) {
			total = number - 1
			break
		}
		if err != nil {
			return err
		}
		err = l.Show(s.out, s.bytesOf(l))
		if errors.Is(err, tools.ErrPageFull) {
			full = true
			break
		}
		if err != nil {
			return err
		}
		at = l.next
		blank = blank && l.Size == 0
	}
	if total >= 0 && r.from > total {
		return s.past("lines", asked, total)
	}
	if blank && !full {
		s.out.Note("there are line ends only, no text")
	}
	if full {
		s.out.Next(s.call("lines", span{from: number, to: r.to}))
	}
	if total < 0 {
		if total, err = s.restOfLines(number, at); err != nil {
			return err
		}
	}
	s.out.Span(r.from, total)
	if r.to != open && total >= 0 && r.to > total {
		s.out.Note(fmt.Sprintf("the source ends at line %d", total))
	}
	return nil
}

// totalLines is how many lines there are: as they were counted, or now where need says that it must be known; else −1.
func (s *slicer) totalLines(need bool) (int64, error) {
	if o := s.src.Observation; o != nil && o.Dropped == 0 && s.src.Plain() && (o.Seen.Lines > 0 || s.src.Size == 0) {
		return o.Seen.Lines, nil
	}
	if !need {
		return -1, nil
	}
	return s.text.lines(0)
}

// endedAt is how many lines there are where the text ends at byte end after so many newlines.
func (s *slicer) endedAt(newlines, end int64) (int64, error) {
	if end == 0 {
		return 0, nil
	}
	var last [1]byte
	if _, err := s.text.ReadAt(last[:], end-1); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if last[0] != '\n' {
		newlines++
	}
	return newlines, nil
}

// restOfLines counts what follows line number, which begins at at, where that is cheap; else −1.
func (s *slicer) restOfLines(number, at int64) (int64, error) {
	if s.src.Size-at > cheap {
		return -1, nil
	}
	n, err := s.text.lines(at)
	return number - 1 + n, err
}

// part is a line or a record: bytes [start, end), with the next one at next.
type part struct {
	tools.Gathered
	start, end, next int64
}

// readLine reads the line that begins at at.
func readLine(b *bufio.Reader, at int64) (part, error) {
	l := part{start: at}
	for ended := false; !ended; {
		p, err := b.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(p) == 0 {
			if at == l.start {
				return l, io.EOF
			}
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return l, err
		}
		at += int64(len(p))
		ended = !errors.Is(err, bufio.ErrBufferFull)
		if err == nil {
			p = p[:len(p)-1]
		}
		l.Add(p, longRow)
	}
	if l.next = at; at > l.start+l.Size { // a newline
		l.CutSuffix('\r')
	}
	l.end = l.start + l.Size
	return l, nil
}

// bytesOf is the call that shows all of a part, by its bytes.
func (s *slicer) bytesOf(l part) tools.Call {
	return s.call("bytes", span{from: l.start, to: max(l.end-1, l.start)})
}

// readPart reads the bytes [at.Start, at.End) of t.
func readPart(t *text, at content.Span) (part, error) {
	l := part{start: at.Start, next: at.End}
	buf := make([]byte, min(window, at.End-at.Start))
	for off := at.Start; off < at.End; {
		n, err := t.ReadAt(buf[:min(int64(len(buf)), at.End-off)], off)
		if errors.Is(err, io.EOF) {
			return l, fmt.Errorf("%s ended while it was read: %w", t.src.Name, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return l, err
		}
		off += int64(n)
		l.Add(buf[:n], longRow)
	}
	l.end = at.End
	return l, nil
}
