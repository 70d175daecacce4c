package lines

import (
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/mapped"
)

// survey is a [parallel] way through a file that reads only the lines around needles. The rest is looked at where the kernel holds it:
// copying it takes twice as long as looking at it. It is for texts in which needles are rare, and gives up where they are not.
type survey struct {
	parallel
	file *mapped.File
	base int64 // of the text in the file
}

// near is how much is read at a needle, in bytes: more often than not there is one match, or several close together.
func (b bounds) near() int { return b.block / 16 }

// survey returns nil where the text is no file that can be mapped, or no literal tells where a match may be. Lines beside matches
// are not read, so that there must be no wish for them.
func (s *scan) survey() *survey {
	if s.m.vectors == nil || s.t.o.Invert || s.t.o.Before+s.t.o.After > 0 || s.again == nil || s.again.Size() < s.m.bounds.large {
		return nil
	}
	section, ok := s.again.(interface {
		Outer() (r io.ReaderAt, off, n int64)
	})
	if !ok {
		return nil
	}
	r, base, size := section.Outer()
	file := mapped.Of(r)
	if file == nil {
		return nil
	}
	v := &survey{file: file, base: base}
	v.parallel = parallel{s: s, from: s.base, size: size, step: 8 * s.m.bounds.block}
	v.look = v.chunk
	return v
}

// chunk looks at a chunk, and reads what it must.
func (v *survey) chunk(c *chunk, f *finder) (err error) {
	from, n := v.bounds(c)
	seen := v.file.Look(v.base+from, n, func(b []byte) {
		start, stop := v.lines(c, from, b, false)
		if start > stop { // a line end has come or gone since it was looked for
			c.ended, c.stuck = false, true
			return
		}
		err = v.pieces(c, f, b[start:stop], from+int64(start))
	})
	if !seen {
		c.pieces, c.ended, c.stuck = c.pieces[:0], false, true
	}
	return err
}

// pieces goes from needle to needle of b, which is mapped: whole lines, but for the text's last.
func (v *survey) pieces(c *chunk, f *finder, b []byte, base int64) error {
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
		end := min(startAfter(b, min(start+v.s.m.bounds.near(), len(b))-1), len(b))
		if end-start > len(room) || f.dense > 0 || whole < end && end < len(b) { // the last: behind the last line there is a line now
			c.ended, c.stuck = false, true
			return nil
		}
		text := room[:end-start]
		room = room[end-start:]
		if n, err := v.s.again.ReadAt(text, base+int64(start)); n < len(text) {
			c.ended, c.stuck = false, true
			if errors.Is(err, io.EOF) {
				err = nil // another way sees what is there now
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

// needle is the start of the next line that holds one, else len(b), and the lines before it.
func (v *survey) needle(f *finder, b []byte, pos int) (start, lines int) {
	if pos == len(b) {
		return pos, 0
	}
	at, _, lines := f.vectors.find(b, pos)
	if at >= len(b) {
		return len(b), lines
	}
	return pos + lastNewline(b[pos:at]) + 1, lines
}
