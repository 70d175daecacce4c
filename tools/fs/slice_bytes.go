package fs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// showBytes shows the text of a range of bytes, of a binary source a hex dump.
func (s *slicer) showBytes(r sliceRange) error {
	asked := r
	total, err := s.text.totalBytes()
	if err != nil {
		return err
	}
	r = r.resolveLast(0, total)
	if r.from >= total {
		return pastEnd("bytes", asked, s.src.Name, total)
	}
	end := min(r.to, total-1) + 1
	if r.to != openEnd && r.to >= total {
		s.out.Note(fmt.Sprintf("the source ends at byte %d", total-1))
	}
	if s.src.Encoding == content.NoText {
		return s.showHex(r.from, end)
	}
	return s.showText(textCursor{at: r.from, unit: "bytes", number: r.from, to: r.to, isRange: true}, end, total)
}

// showChars shows the text of a range of chars. An invalid byte counts as a char.
func (s *slicer) showChars(r sliceRange) error {
	asked := r
	if r.last > 0 {
		total, err := s.totalChars()
		if err != nil {
			return err
		}
		if total == 0 {
			return pastEnd("chars", asked, s.src.Name, 0)
		}
		r = r.resolveLast(0, total)
	}
	known, off := s.src.CharOffset(r.from)
	at, passed, err := s.text.skipChars(off, r.from-known)
	if err != nil {
		return err
	}
	var one [1]byte
	if n, err := s.text.ReadAt(one[:], at); n == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return pastEnd("chars", asked, s.src.Name, known+passed) // all were passed: known+passed of them
	}
	return s.showText(textCursor{at: at, unit: "chars", number: r.from, to: r.to, isRange: true}, openEnd, -1)
}

func (s *slicer) totalChars() (int64, error) {
	if o := s.src.Observation; o != nil && o.Dropped == 0 && s.src.Plain() && o.Stats.Chars > 0 {
		return o.Stats.Chars, nil
	}
	_, n, err := s.text.skipChars(0, openEnd)
	return n, err
}

// textCursor is the position of showText, in bytes and in the unit of the call.
type textCursor struct {
	at      int64
	unit    string
	number  int64 // of the next byte or char
	to      int64 // the last one wanted
	isRange bool  // the call names this range, not the JSON value at it
}

// showText shows the text from p to byte end, or to the last char wanted, line by line and unchanged, until the page is
// full. The next call then continues at the exact byte or char.
func (s *slicer) showText(p textCursor, end, total int64) error {
	from, blank := p.number, true
	in := bufio.NewReaderSize(s.text.reader(p.at), window)
	for empty := true; p.at < end && p.number <= p.to; empty = false {
		b, goesOn, err := p.nextLine(in, end)
		if err != nil {
			return err
		}
		if len(b) == 0 { // the text has ended
			break
		}
		full := false
		if n := s.fit(b); n < len(b) {
			full = !empty
			b, goesOn = b[:n], true
		}
		if !full {
			err := s.page.Text(b)
			if full = errors.Is(err, tools.ErrPageFull); err != nil && !full {
				return err
			}
		}
		if !full {
			p.number += p.unitsIn(b)
			p.at += int64(len(b))
			blank = blank && len(bytes.TrimRight(b, "\r\n")) == 0
			_, _ = in.Discard(len(b)) // it is buffered
		}
		if full || goesOn {
			s.page.Next(s.call(p.unit, sliceRange{from: p.number, to: p.to}))
			return s.setTextRange(p, from, total)
		}
	}
	if blank {
		s.out.Note("the range has only line ends, no text")
	}
	if !p.isRange {
		return nil
	}
	if _, err := in.Peek(1); errors.Is(err, io.EOF) && p.unit == "chars" {
		if total = p.number; p.to != openEnd && total <= p.to {
			s.out.Note(fmt.Sprintf("the source ends at char %d", total-1))
		}
	}
	return s.setTextRange(p, from, total)
}

// nextLine returns the line at p with its line end, cut at the end of the range. Of a line longer than window it
// returns the beginning, and goesOn is true.
func (p textCursor) nextLine(in *bufio.Reader, end int64) (b []byte, goesOn bool, err error) {
	b, _ = in.Peek(in.Buffered())
	newline := bytes.IndexByte(b, '\n')
	if newline < 0 {
		if b, err = in.Peek(window); err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		newline = bytes.IndexByte(b, '\n')
		goesOn = newline < 0 && err == nil
	}
	if newline >= 0 {
		b = b[:newline+1]
	}
	if goesOn { // do not split a char, and leave more of the line than its line end
		b = b[:runes.Complete(b)]
		if text := bytes.TrimRight(b, "\r"); len(text) > utf8.UTFMax {
			_, size := utf8.DecodeLastRune(text)
			b = text[:len(text)-size]
		}
	}
	if left := end - p.at; left <= int64(len(b)) {
		b, goesOn = b[:left], false
	}
	if p.unit == "chars" && p.to != openEnd {
		if n, all := firstChars(b, p.to-p.number+1); all {
			b, goesOn = b[:n], false
		}
	}
	return b, goesOn, nil
}

// setTextRange sets the range of the text that the page shows; total −1: not counted yet.
func (s *slicer) setTextRange(p textCursor, from, total int64) error {
	total, err := s.countIfCheap(p.unit, total)
	if err == nil {
		s.page.SetTextRange(p.unit, from, p.number-1, total)
	}
	return err
}

// countIfCheap returns the number of bytes or chars of the text: total if it is known, else a count if the source has
// at most maxCountedBytes, else −1.
func (s *slicer) countIfCheap(unit string, total int64) (int64, error) {
	switch {
	case total >= 0 || s.src.Extent() > maxCountedBytes && (unit != "bytes" || s.text.size < 0):
		return total, nil
	case unit == "chars":
		return s.totalChars()
	}
	return s.text.totalBytes()
}

// unitsIn returns the number of chars or bytes of b, in the unit of the cursor.
func (p textCursor) unitsIn(b []byte) int64 {
	if p.unit == "chars" {
		return int64(utf8.RuneCount(b))
	}
	return int64(len(b))
}

// firstChars returns the number of bytes of the first n chars of b; all is false if b has fewer.
func firstChars(b []byte, n int64) (size int, all bool) {
	if int64(len(b)) < n {
		return len(b), false
	}
	for ; n > 0 && size < len(b); n-- {
		_, s := utf8.DecodeRune(b[size:])
		size += s
	}
	return size, n == 0
}

// showHex shows bytes as xxd does, 16 per row.
func (s *slicer) showHex(from, end int64) error {
	total := s.text.size
	var b [16]byte
	for at := from; at < end; at += 16 {
		n, err := s.text.ReadAt(b[:min(16, end-at)], at)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		err = s.page.Row(hexRow(at, b[:n]), tools.Call{})
		if errors.Is(err, tools.ErrPageFull) {
			p := textCursor{unit: "bytes", number: at}
			to := end - 1
			if end == total {
				to = openEnd
			}
			s.page.Next(s.call("bytes", sliceRange{from: at, to: to}))
			return s.setTextRange(p, from, total)
		}
		if err != nil {
			return err
		}
	}
	return s.setTextRange(textCursor{unit: "bytes", number: end}, from, total)
}

func hexRow(at int64, b []byte) []byte {
	row := fmt.Appendf(nil, "%08x:", at)
	for i := range 16 {
		if i%2 == 0 {
			row = append(row, ' ')
		}
		if i < len(b) {
			row = fmt.Appendf(row, "%02x", b[i])
		} else {
			row = append(row, "  "...)
		}
	}
	row = append(row, "  "...)
	for _, c := range b {
		if c < 0x20 || c >= 0x7f {
			c = '.'
		}
		row = append(row, c)
	}
	return row
}
