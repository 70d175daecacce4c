package lines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// parallel goes through a large text on several cores:
//
//	offsets ─► work ─► workers: read a chunk, find its lines that match ─┐
//	   └─────► ahead, in order ◄─────────────────────────────────────────┘─► teller
//
// A line belongs to the chunk in which it starts. A chunk whose last line does not end soon after it is left to the plain way.
// Where the text is a file and matches are rare, chunks are larger, and looked at without reading them (survey.go).
type parallel struct {
	s       *scan
	ctx     context.Context
	from    int64 // a line's start
	size    int64
	step    int // from chunk to chunk
	look    func(c *chunk, f *finder) error
	work    chan *chunk
	quiet   atomic.Bool // only numbers of lines are wanted from now on
	pending []*chunk    // in order
	free    []*chunk
}

// chunk is a stretch of the text and what was found in it.
type chunk struct {
	at     int64 // of the text, where lines of the chunk may start …
	buf    []byte
	pieces []piece // its lines
	ended  bool    // the text ends with it
	stuck  bool    // its lines, or those after the pieces, are not known: no line end was found, or it was not for a survey
	err    error
	done   chan struct{}
}

// piece is some lines in a row.
type piece struct {
	base int64 // of the text
	size int
	b    []byte // nil: they were not read, as none of them matches
	hits hits
}

// next is one more piece, with the memory of one of before.
func (c *chunk) next() *piece {
	if len(c.pieces) < cap(c.pieces) {
		c.pieces = c.pieces[:len(c.pieces)+1]
	} else {
		c.pieces = append(c.pieces, piece{})
	}
	p := &c.pieces[len(c.pieces)-1]
	*p = piece{hits: hits{at: p.hits.at[:0]}}
	return p
}

// held is the memory its hits take, in bytes.
func (c *chunk) held() (n int) {
	for _, p := range c.pieces[:cap(c.pieces)] {
		n += 4 * cap(p.hits.at)
	}
	return n
}

func (c *chunk) defect() bool {
	caught := (*panics.Caught)(nil)
	return errors.As(c.err, &caught)
}

var chunks = sync.Pool{New: func() any {
	return &chunk{buf: make([]byte, 1+usual.block+usual.over), done: make(chan struct{}, 1)}
}}

// parallel goes on from s.base, and returns true at the end of the text; false leaves the line at s.base to another way.
func (s *scan) parallel(workers int) (bool, error) {
	p := &parallel{s: s, from: s.base, size: s.again.Size(), step: s.m.bounds.block}
	p.look = p.read
	return p.run(workers)
}

func (p *parallel) run(workers int) (bool, error) {
	ctx, cancel := context.WithCancel(p.s.ctx)
	p.ctx, p.work = ctx, make(chan *chunk, 2*workers)
	p.quiet.Store(p.s.t.quiet)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(p.worker)
	}
	for range 2 * workers {
		p.free = append(p.free, chunks.Get().(*chunk))
	}
	defer func() {
		cancel()
		close(p.work)
		wg.Wait()
		for _, c := range append(p.free, p.pending...) {
			select { // it may have been finished, or not
			case <-c.done:
			default:
			}
			if c.held() <= usual.block {
				chunks.Put(c)
			}
		}
	}()
	for next := p.from; ; {
		for len(p.free) > 0 && next < p.size {
			c := p.free[len(p.free)-1]
			p.free = p.free[:len(p.free)-1]
			c.at = next
			next += int64(p.step)
			p.pending = append(p.pending, c)
			p.work <- c
		}
		if len(p.pending) == 0 {
			return true, nil
		}
		c := p.pending[0]
		<-c.done
		p.pending, p.free = p.pending[1:], append(p.free, c)
		if ended, err := p.take(c); ended || err != nil {
			return ended && !c.stuck, err
		}
	}
}

// take tells the lines of a chunk; true where it is the last one to be taken.
func (p *parallel) take(c *chunk) (bool, error) {
	if c.err != nil {
		return false, panics.Again(c.err)
	}
	s := p.s
	for i := range c.pieces {
		piece := &c.pieces[i]
		if piece.base != s.base { // a line end has come or gone between two looks: another way goes on from what was told
			c.ended, c.stuck = false, true
			break
		}
		if err := s.tell(piece.b, &piece.hits); err != nil {
			return false, err
		}
		s.base += int64(piece.size)
	}
	if s.t.quiet {
		p.quiet.Store(true)
	}
	s.progress(s.base)
	return c.ended || c.stuck, s.ctx.Err()
}

func (p *parallel) worker() {
	f := p.s.m.finder(p.ctx)
	for c := range p.work {
		c.pieces, c.ended, c.stuck = c.pieces[:0], false, false
		if c.err = p.ctx.Err(); c.err == nil {
			panics.Into(&c.err, func() { c.err = p.look(c, f) })
		}
		if c.defect() {
			f = p.s.m.finder(p.ctx) // the old one may be in any state
		}
		c.done <- struct{}{}
	}
	f.close()
}

// read reads a chunk and finds its lines.
func (p *parallel) read(c *chunk, f *finder) error {
	from, n := p.bounds(c)
	buf := c.buf[:n]
	n, err := p.s.again.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start, stop := p.lines(c, from, buf[:n], n < len(buf))
	if start == stop {
		return nil
	}
	return p.found(c, f, buf[start:stop], from+int64(start))
}

// bounds are where the bytes start that a chunk needs, and how many they are: the one before it, so that a line end there is seen, and
// some after it, for the end of its last line.
func (p *parallel) bounds(c *chunk) (from int64, n int) {
	from, n = c.at, p.step+p.s.m.bounds.over
	if c.at != p.from {
		from, n = from-1, n+1
	}
	return from, int(min(int64(n), p.size-from))
}

// lines is where those of a chunk start and stop in b, the text at from; short says that the text has become so.
func (p *parallel) lines(c *chunk, from int64, b []byte, short bool) (start, stop int) {
	last := short || from+int64(len(b)) >= p.size
	next := int(c.at-from) + p.step // the chunk after it starts here
	stop = len(b)
	if c.at > from {
		start = startAfter(b, 0)
	}
	if stop > next {
		stop = startAfter(b, next-1)
	}
	if c.stuck = max(start, stop) > len(b) && !last; c.stuck {
		return 0, 0
	}
	start, stop = min(start, len(b)), min(stop, len(b))
	c.ended = last && stop == len(b)
	return start, stop
}

// found makes a piece of lines that were read.
func (p *parallel) found(c *chunk, f *finder, b []byte, base int64) error {
	piece := c.next()
	piece.b, piece.base, piece.size = b, base, len(b)
	piece.hits.only = p.quiet.Load()
	if err := f.find(b, &piece.hits); err != nil {
		return err
	}
	if piece.hits.lines == 0 {
		piece.hits.lines = countLines(b)
	}
	return nil
}

// startAfter is where the line after the first line end at or after from starts; over len(b) where there is none.
func startAfter(b []byte, from int) int {
	if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(b) + 1
}
