package fs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

const (
	// longRow is the longest row handed on as it is: the funnel clips what is over a page, and tells how much
	// is left out. A longer one is clipped here, so that a line of a gigabyte takes no memory.
	longRow = 1 << 20
	// edge is how many bytes such a row shows of its beginning, and half as many of its end.
	edge = 2000
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
		err = s.row(l, s.bytesOf(l))
		if errors.Is(err, tools.ErrPageFull) {
			full = true
			break
		}
		if err != nil {
			return err
		}
		at = l.next
		blank = blank && !l.long && len(l.whole) == 0
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

// part is a line or a record: bytes [start, end), with the next one at next. Of a long one head and tail are its ends.
type part struct {
	start, end, next int64
	whole            []byte
	long             bool
	head, tail       []byte
	chars            int64
}

// readLine reads the line that begins at at.
func readLine(b *bufio.Reader, at int64) (part, error) {
	l := part{start: at}
	ended := false
	var held []byte
	for !ended {
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
		held = l.add(p, held)
	}
	l.next, l.end = at, l.start+l.size()
	l.chars += int64(utf8.RuneCount(held))
	l.trimCR(l.next > l.end)
	return l, nil
}

// size is how many bytes were added.
func (l *part) size() int64 {
	if l.long {
		return l.end - l.start
	}
	return int64(len(l.whole))
}

// add takes more of the part. held is a char that the end of what came before cut.
func (l *part) add(p, held []byte) []byte {
	if !l.long && len(l.whole)+len(p) <= longRow {
		l.whole = append(l.whole, p...)
		return nil
	}
	if !l.long {
		l.long = true
		l.head = bytes.Clone(l.whole[:min(len(l.whole), edge)])
		l.tail = bytes.Clone(l.whole[max(0, len(l.whole)-edge):])
		done := completeRunes(l.whole)
		l.chars = int64(utf8.RuneCount(l.whole[:done]))
		held = bytes.Clone(l.whole[done:])
		l.end = l.start + int64(len(l.whole))
		l.whole = nil
	}
	l.end += int64(len(p))
	l.head = append(l.head, p[:min(len(p), edge-len(l.head))]...)
	l.tail = append(l.tail, p[max(0, len(p)-edge):]...)
	l.tail = l.tail[max(0, len(l.tail)-edge):]
	both := p
	if len(held) > 0 {
		both = append(held, p...)
	}
	done := completeRunes(both)
	l.chars += int64(utf8.RuneCount(both[:done]))
	return bytes.Clone(both[done:])
}

// trimCR leaves out a carriage return before the newline.
func (l *part) trimCR(newline bool) {
	switch {
	case !newline:
	case l.long && bytes.HasSuffix(l.tail, []byte{'\r'}):
		l.tail = l.tail[:len(l.tail)-1]
		l.chars--
		l.end--
	case bytes.HasSuffix(l.whole, []byte{'\r'}):
		l.whole = l.whole[:len(l.whole)-1]
		l.end--
	}
}

// bytesOf is the call that shows all of a part, by its bytes.
func (s *slicer) bytesOf(l part) tools.Call {
	return s.call("bytes", span{from: l.start, to: max(l.end-1, l.start)})
}

// row shows a line or record; one over a page is clipped, with the way to all of it.
func (s *slicer) row(l part, all tools.Call) error {
	if !l.long {
		return s.out.Row(l.whole, all)
	}
	head := l.head[:breakBefore(l.head, edge*3/4)]
	from := len(l.tail) - edge/3
	for i := 0; i < utf8.UTFMax && from < len(l.tail) && !utf8.RuneStart(l.tail[from]); i++ {
		from++
	}
	tail := l.tail[from:]
	left := l.chars - int64(utf8.RuneCount(head)) - int64(utf8.RuneCount(tail))
	err := s.out.Row(fmt.Appendf(nil, "%s… %d chars …%s", head, left, tail), all)
	if err == nil {
		s.out.Note("a row is cut in its middle, whole: " + words(all))
	}
	return err
}

// readPart reads the bytes [at.Start, at.End) of t.
func readPart(t *text, at content.Span) (part, error) {
	l := part{start: at.Start, next: at.End}
	buf := make([]byte, min(window, at.End-at.Start))
	var held []byte
	for off := at.Start; off < at.End; {
		n, err := t.ReadAt(buf[:min(int64(len(buf)), at.End-off)], off)
		if errors.Is(err, io.EOF) {
			return l, fmt.Errorf("%s ended while it was read: %w", t.src.Name, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return l, err
		}
		off += int64(n)
		held = l.add(buf[:n], held)
	}
	l.chars += int64(utf8.RuneCount(held))
	l.end = at.End
	return l, nil
}
