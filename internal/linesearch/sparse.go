package linesearch

import (
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/mmap"
)

// sparseScan is a [parallel] search of a file that reads only the lines around needles. The rest is searched in a
// memory mapping: copying takes twice as long as searching. The scan gives up if needles are not rare. It is needed
// to meet the rows "grep: 200 MB" with literals of docs/SPEED.md.
type sparseScan struct {
	parallel
	file *mmap.File
	base int64 // offset in the file at which the text starts
}

// newSparseScan returns nil if the text is not a file that can be mapped, if no needle is known, or if context or
// inverted lines are wanted, because these lines are not read.
func (s *lineScan) newSparseScan() *sparseScan {
	if s.m.newSearcher == nil || s.out.Invert || s.out.Before+s.out.After > 0 || s.readerAt == nil ||
		s.readerAt.Size() < s.m.sizes.large {
		return nil
	}
	section, ok := s.readerAt.(interface {
		Outer() (r io.ReaderAt, off, n int64)
	})
	if !ok {
		return nil
	}
	r, base, size := section.Outer()
	file := mmap.Of(r)
	if file == nil {
		return nil
	}
	v := &sparseScan{file: file, base: base}
	v.parallel = parallel{s: s, from: s.base, size: size, step: 8 * s.m.sizes.block}
	v.scanChunk = v.chunk
	return v
}

// chunk searches a mapped chunk and reads the lines around its needles.
func (v *sparseScan) chunk(c *chunk, f *finder) (err error) {
	from, n := v.readRange(c)
	seen := v.file.View(v.base+from, n, func(b []byte) {
		start, stop := v.lines(c, from, b, false)
		if start > stop { // the file has changed since a newline was found
			c.ended, c.incomplete = false, true
			return
		}
		err = v.pieces(c, f, b[start:stop], from+int64(start))
	})
	if !seen {
		c.runs, c.ended, c.incomplete = c.runs[:0], false, true
	}
	return err
}

// pieces searches mapped lines needle by needle. All lines of b are whole except for the last line of the text.
func (v *sparseScan) pieces(c *chunk, f *finder, b []byte, base int64) error {
	whole, room := lastNewline(b)+1, c.buf
	for pos := 0; pos < len(b); {
		start, lines := v.needle(f, b[:whole], pos)
		if start > pos {
			p := c.next()
			p.base, p.size, p.hits.lines = base+int64(pos), start-pos, int64(lines)
		}
		if start == len(b) {
			return nil
		}
		// usually there is one match, or several close together
		end := lineEnd(b, min(start+v.s.m.sizes.block/16, len(b))-1)
		// the last condition is true if the file grew and the last line got a newline
		if end-start > len(room) || whole < end && end < len(b) {
			c.ended, c.incomplete = false, true
			return nil
		}
		text := room[:end-start]
		room = room[end-start:]
		if n, err := v.s.readerAt.ReadAt(text, base+int64(start)); n < len(text) {
			c.ended, c.incomplete = false, true
			if errors.Is(err, io.EOF) {
				err = nil // the file was truncated: the caller reads the text again
			}
			return err
		}
		if err := v.found(c, f, text, base+int64(start)); err != nil {
			return err
		}
		pos = end
	}
	return nil
}

// needle returns the start of the next line that contains a needle, or len(b), and the number of lines before that
// line.
func (v *sparseScan) needle(f *finder, b []byte, pos int) (start, lines int) {
	if pos == len(b) {
		return pos, 0
	}
	at, _, lines := f.searcher.Find(b, pos)
	if at >= len(b) {
		return len(b), lines
	}
	return pos + lastNewline(b[pos:at]) + 1, lines
}
