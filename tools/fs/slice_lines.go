package fs

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

const (
	// maxHeldRow is the longest row that is held whole, in bytes; of a longer one only both ends are, so that a line
	// of a gigabyte takes little memory.
	maxHeldRow = 1 << 20
	// maxCountedBytes is the maximum number of bytes that are read only to count a total, when the page is full.
	maxCountedBytes = 64 << 20
)

// showLines shows lines as sed -n does. A line end is "\n" or "\r\n".
func (s *slicer) showLines(r sliceRange) error {
	total, err := s.totalLines(r.last > 0)
	if err != nil {
		return err
	}
	if r.last > 0 && total == 0 {
		return pastEnd("lines", r, s.src.Name, 0)
	}
	asked := r
	r = r.resolveLast(1, total)
	known, off := s.src.LineOffset(r.from)
	at, passed, err := s.text.skipLines(off, r.from-known)
	if err != nil {
		return err
	}
	if passed < r.from-known { // the text ended before
		if total, err = s.linesBefore(known-1+passed, at); err != nil {
			return err
		}
		return pastEnd("lines", asked, s.src.Name, total)
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
		err = l.Show(s.page, s.bytesCall(l))
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
		return pastEnd("lines", asked, s.src.Name, total)
	}
	if blank && !full {
		s.out.Note("the range has only line ends, no text")
	}
	if full {
		s.page.Next(s.call("lines", sliceRange{from: number, to: r.to}))
	}
	if total < 0 {
		if total, err = s.countRest(number, at); err != nil {
			return err
		}
	}
	s.page.SetRowRange(r.from, total)
	if r.to != openEnd && total >= 0 && r.to > total {
		s.out.Note(fmt.Sprintf("the source ends at line %d", total))
	}
	return nil
}

// totalLines returns the number of lines: the recorded one of an observation, else a count if need is true, else −1.
func (s *slicer) totalLines(need bool) (int64, error) {
	if o := s.src.Observation; o != nil && o.Dropped == 0 && s.src.Plain() && (o.Stats.Lines > 0 || s.src.Size == 0) {
		return o.Stats.Lines, nil
	}
	if !need {
		return -1, nil
	}
	return s.text.countLines(0)
}

// linesBefore returns the number of lines of a text, given its number of newlines and the offset of its end.
func (s *slicer) linesBefore(newlines, end int64) (int64, error) {
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

// countRest returns the total number of lines, given that line number begins at byte at; −1 if more than
// maxCountedBytes would have to be read.
func (s *slicer) countRest(number, at int64) (int64, error) {
	if s.src.Extent()-at > maxCountedBytes {
		return -1, nil
	}
	n, err := s.text.countLines(at)
	return number - 1 + n, err
}

// textRow is a line or a record at bytes [start, end); the next one begins at next.
type textRow struct {
	tools.RowBuffer
	start, end, next int64
}

// readLine reads the line that begins at byte at.
func readLine(b *bufio.Reader, at int64) (textRow, error) {
	l := textRow{start: at}
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
		l.Add(p, maxHeldRow)
	}
	if l.next = at; at > l.start+l.Size { // a newline
		l.CutSuffix('\r')
	}
	l.end = l.start + l.Size
	return l, nil
}

// bytesCall returns the call that shows all of a row, by its bytes.
func (s *slicer) bytesCall(l textRow) tools.Call {
	return s.call("bytes", sliceRange{from: l.start, to: max(l.end-1, l.start)})
}

// readPart reads the bytes [at.Start, at.End) of t.
func readPart(t *sourceText, at content.Span) (textRow, error) {
	l := textRow{start: at.Start, next: at.End}
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
		l.Add(buf[:n], maxHeldRow)
	}
	l.end = at.End
	return l, nil
}
