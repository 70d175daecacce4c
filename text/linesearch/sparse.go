package linesearch

import (
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/base/mmap"
)

// sparseScan is a [parallel] search of a file that reads only the lines around needles. It finds needles in a memory
// mapping, because reading takes twice as long as searching. The scan gives up if needles are not rare. The rows
// "grep: 200 MB" with literals of docs/SPEED.md need the sparse scan.
type sparseScan struct {
	parallel
	file *mmap.File
	base int64 // offset in the file at which the text starts
}

// newSparseScan returns nil if the text is not a file that can be mapped, if the pattern has no needles, or if context
// or inverted lines are wanted, which a sparse scan does not read.
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
	v.scanChunk = v.searchChunk
	return v
}

// searchChunk maps a chunk, finds its needles, and reads and searches the lines around them.
func (v *sparseScan) searchChunk(c *chunk, f *finder) (err error) {
	from, n := v.readRange(c)
	viewed := v.file.View(v.base+from, n, func(b []byte) {
		start, stop := v.lineRange(c, from, b, false)
		if start > stop { // the file has changed since a newline was found
			c.incomplete = true
			return
		}
		err = v.searchMapped(c, f, b[start:stop], from+int64(start))
	})
	if !viewed {
		c.runs, c.incomplete = c.runs[:0], true
	}
	return err
}

// searchMapped divides mapped lines into runs without needles, which are only counted, and runs around needles, which
// are read and searched. All lines of b are whole except for the last line of the text.
func (v *sparseScan) searchMapped(c *chunk, f *finder, b []byte, base int64) error {
	whole, room := lastNewline(b)+1, c.buf
	for pos := 0; pos < len(b); {
		start, lines := v.nextNeedle(f, b[:whole], pos)
		if start > pos {
			run := c.addRun()
			run.base, run.size, run.hits.lines = base+int64(pos), start-pos, int64(lines)
		}
		if start == len(b) {
			return nil
		}
		// a run around a needle has at least a sixteenth of a block: often several matches are close together
		end := lineEnd(b, min(start+v.s.m.sizes.block/16, len(b))-1)
		// b[whole:end] is not empty before len(b) only if the file grew and its last line got a newline
		if end-start > len(room) || whole < end && end < len(b) {
			c.incomplete = true
			return nil
		}
		text := room[:end-start]
		room = room[end-start:]
		if n, err := v.s.readerAt.ReadAt(text, base+int64(start)); n < len(text) {
			c.incomplete = true
			if errors.Is(err, io.EOF) {
				err = nil // the file was truncated: the caller reads the text again
			}
			return err
		}
		if err := v.searchRun(c, f, text, base+int64(start)); err != nil {
			return err
		}
		pos = end
	}
	return nil
}

// nextNeedle returns the start of the next line that holds a needle, or len(b), and the number of lines before it.
func (v *sparseScan) nextNeedle(f *finder, b []byte, pos int) (start, lines int) {
	if pos == len(b) {
		return pos, 0
	}
	at, _, lines := f.searcher.Find(b, pos)
	if at >= len(b) {
		return len(b), lines
	}
	return pos + lastNewline(b[pos:at]) + 1, lines
}
