package fs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/runes"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// bytes shows the text between two bytes, or a hex dump where it is none.
func (s *slicer) bytes(r span) error {
	asked := r
	total, err := s.text.total()
	if err != nil {
		return err
	}
	r = r.resolve(0, total)
	if r.from >= total {
		return s.past("bytes", asked, total)
	}
	end := min(r.to, total-1) + 1
	if r.to != open && r.to >= total {
		s.out.Note(fmt.Sprintf("the source ends at byte %d", total-1))
	}
	if s.src.Encoding == content.NoText {
		return s.dump(r.from, end)
	}
	return s.run(place{at: r.from, unit: "bytes", number: r.from, to: r.to, asked: true}, end, total)
}

// chars shows the text between two chars. An invalid byte is a char.
func (s *slicer) chars(r span) error {
	asked := r
	if r.last > 0 {
		total, err := s.totalChars()
		if err != nil {
			return err
		}
		if total == 0 {
			return s.past("chars", asked, 0)
		}
		r = r.resolve(0, total)
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
		return s.past("chars", asked, known+passed) // all were passed: known+passed of them
	}
	return s.run(place{at: at, unit: "chars", number: r.from, to: r.to, asked: true}, open, -1)
}

func (s *slicer) totalChars() (int64, error) {
	if o := s.src.Observation; o != nil && o.Dropped == 0 && s.src.Plain() && o.Seen.Chars > 0 {
		return o.Seen.Chars, nil
	}
	_, n, err := s.text.skipChars(0, open)
	return n, err
}

// place is how far a run of text has come, in bytes and in the unit in which the call counts.
type place struct {
	at     int64
	unit   string
	number int64 // of the next byte or char
	to     int64 // the last one wanted
	asked  bool  // the call names this range, not a value that stands there
}

// run shows text from p to byte end, or to the last char wanted, exactly and a line at a time, until the page is full; the next call
// then goes on at the very byte or char.
func (s *slicer) run(p place, end, total int64) error {
	from, blank := p.number, true
	in := bufio.NewReaderSize(s.text.reader(p.at), window)
	for empty := true; p.at < end && p.number <= p.to; empty = false {
		b, goesOn, err := p.line(in, end)
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
			err := s.out.Stretch(b)
			if full = errors.Is(err, tools.ErrPageFull); err != nil && !full {
				return err
			}
		}
		if !full {
			p.number += p.measure(b)
			p.at += int64(len(b))
			blank = blank && len(bytes.TrimRight(b, "\r\n")) == 0
			_, _ = in.Discard(len(b)) // it is buffered
		}
		if full || goesOn {
			s.out.Next(s.call(p.unit, span{from: p.number, to: p.to}))
			return s.reach(p, from, total)
		}
	}
	if blank {
		s.out.Note("there are line ends only, no text")
	}
	if !p.asked {
		return nil
	}
	if _, err := in.Peek(1); errors.Is(err, io.EOF) && p.unit == "chars" {
		if total = p.number; p.to != open && total <= p.to {
			s.out.Note(fmt.Sprintf("the source ends at char %d", total-1))
		}
	}
	return s.reach(p, from, total)
}

// line is the one that follows p, with its line end, up to the end of the range, or a window of it, behind which it goes on.
func (p place) line(in *bufio.Reader, end int64) (b []byte, goesOn bool, err error) {
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
	if goesOn { // no char is torn apart, and what is left of the line is more than its end
		b = b[:runes.Complete(b)]
		if text := bytes.TrimRight(b, "\r"); len(text) > utf8.UTFMax {
			_, size := utf8.DecodeLastRune(text)
			b = text[:len(text)-size]
		}
	}
	if left := end - p.at; left <= int64(len(b)) {
		b, goesOn = b[:left], false
	}
	if p.unit == "chars" && p.to != open {
		if n, all := firstChars(b, p.to-p.number+1); all {
			b, goesOn = b[:n], false
		}
	}
	return b, goesOn, nil
}

// reach tells which part of the text a page shows; total −1: it is still to be counted.
func (s *slicer) reach(p place, from, total int64) error {
	total, err := s.counted(p.unit, total)
	if err == nil {
		s.out.Reach(p.unit, from, p.number-1, total)
	}
	return err
}

// counted is how many bytes or chars the text has: total where that is known, else counted where that is cheap, else −1.
func (s *slicer) counted(unit string, total int64) (int64, error) {
	switch {
	case total >= 0 || s.src.Size > cheap && (unit != "bytes" || s.text.size < 0):
		return total, nil
	case unit == "chars":
		return s.totalChars()
	}
	return s.text.total()
}

// measure is how far a piece of the text leads, in the unit of the place.
func (p place) measure(b []byte) int64 {
	if p.unit == "chars" {
		return int64(utf8.RuneCount(b))
	}
	return int64(len(b))
}

// firstChars is how many bytes the first n chars of b have, or all of b; all says that b has that many.
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

// dump shows bytes as xxd does, sixteen a row.
func (s *slicer) dump(from, end int64) error {
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
		err = s.out.Row(hexRow(at, b[:n]), tools.Call{})
		if errors.Is(err, tools.ErrPageFull) {
			p := place{unit: "bytes", number: at}
			to := end - 1
			if end == total {
				to = open
			}
			s.out.Next(s.call("bytes", span{from: at, to: to}))
			return s.reach(p, from, total)
		}
		if err != nil {
			return err
		}
	}
	return s.reach(place{unit: "bytes", number: end}, from, total)
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
