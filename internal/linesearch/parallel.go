package linesearch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// parallel searches a large text with several workers:
//
//	offsets ─► work ─► workers: read a chunk, find its matching lines ─┐
//	   └─────► pending, in order ◄─────────────────────────────────────┘─► emitter
//
// A line belongs to the chunk in which it starts. If the last line of a chunk does not end within sizes.overlap bytes
// after the chunk, the caller continues from that chunk in one goroutine. The workers are needed to meet the row
// "grep: a literal, two cores" of docs/SPEED.md. sparseScan has larger chunks, and maps them instead of reading them.
type parallel struct {
	s         *lineScan
	ctx       context.Context
	from      int64 // offset at which the search begins: the start of a line
	size      int64
	step      int // distance between the starts of two chunks, in bytes
	scanChunk func(c *chunk, f *finder) error
	work      chan *chunk
	pending   []*chunk // chunks queued or searched but not emitted, in order
	free      []*chunk
}

// chunk is a range of the text with the lines found in it.
type chunk struct {
	at         int64 // offset of the chunk in the text; its first line starts here or later
	buf        []byte
	runs       []piece // runs of the chunk's lines
	ended      bool    // the text ends with this chunk
	incomplete bool    // lines are missing after runs: no newline was found, or a sparse scan gave up
	err        error
	done       chan struct{}
}

// piece is a run of adjacent lines.
type piece struct {
	base int64 // offset in the text
	size int
	b    []byte // the lines; nil if they were not read because none matches
	hits hits
}

// next appends a run to the chunk and returns it; the run reuses the memory of an earlier one.
func (c *chunk) next() *piece {
	c.runs = slices.Grow(c.runs, 1)[:len(c.runs)+1]
	p := &c.runs[len(c.runs)-1]
	*p = piece{hits: hits{at: p.hits.at[:0]}}
	return p
}

// scanParallel continues the search at s.base. It returns true at the end of the text. If it returns false, the
// caller must search the line at s.base itself.
func (s *lineScan) scanParallel(workers int) (bool, error) {
	p := &parallel{s: s, from: s.base, size: s.readerAt.Size(), step: s.m.sizes.block}
	p.scanChunk = p.read
	return p.run(workers)
}

func (p *parallel) run(workers int) (bool, error) {
	ctx, cancel := context.WithCancel(p.s.ctx)
	p.ctx, p.work = ctx, make(chan *chunk, 2*workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(p.worker)
	}
	for range 2 * workers {
		p.free = append(p.free, &chunk{
			buf: make([]byte, 1+defaultSizes.block+defaultSizes.overlap), done: make(chan struct{}, 1),
		})
	}
	defer func() {
		cancel()
		close(p.work)
		wg.Wait()
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
		if ended, err := p.emitChunk(c); ended || err != nil {
			return ended && !c.incomplete, err
		}
	}
}

// emitChunk emits the lines of a chunk; it returns true if no further chunk may be emitted.
func (p *parallel) emitChunk(c *chunk) (bool, error) {
	if c.err != nil {
		return false, panics.Again(c.err)
	}
	s := p.s
	for i := range c.runs {
		piece := &c.runs[i]
		if piece.base != s.base { // the file changed between two reads: the caller continues after the lines emitted
			c.ended, c.incomplete = false, true
			break
		}
		if err := s.emitBlock(piece.b, &piece.hits); err != nil {
			return false, err
		}
		s.base += int64(piece.size)
	}
	s.progress(s.base)
	return c.ended || c.incomplete, s.ctx.Err()
}

func (p *parallel) worker() {
	f := p.s.m.finder(p.ctx)
	for c := range p.work {
		c.runs, c.ended, c.incomplete = c.runs[:0], false, false
		if c.err = p.ctx.Err(); c.err == nil {
			intact := false
			panics.Into(&c.err, func() { c.err = p.scanChunk(c, f); intact = true })
			if !intact {
				f = p.s.m.finder(p.ctx) // the panic may have left the old finder in any state
			}
		}
		c.done <- struct{}{}
	}
	f.release()
}

// read reads a chunk and finds its matching lines.
func (p *parallel) read(c *chunk, f *finder) error {
	from, n := p.readRange(c)
	buf := c.buf[:n]
	n, err := p.s.readerAt.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start, stop := p.lines(c, from, buf[:n], n < len(buf))
	if start == stop {
		return nil
	}
	return p.found(c, f, buf[start:stop], from+int64(start))
}

// readRange returns the range of bytes that a chunk needs: one byte before the chunk, to see a line end there, and
// sizes.overlap bytes after the chunk, for the end of its last line.
func (p *parallel) readRange(c *chunk) (from int64, n int) {
	from, n = c.at, p.step+p.s.m.sizes.overlap
	if c.at != p.from {
		from, n = from-1, n+1
	}
	return from, int(min(int64(n), p.size-from))
}

// lines returns the start and end, in b, of the lines of a chunk. from is the offset of b in the text; short is true
// if the text was truncated.
func (p *parallel) lines(c *chunk, from int64, b []byte, short bool) (start, stop int) {
	last := short || from+int64(len(b)) >= p.size
	next := int(c.at-from) + p.step // the next chunk starts here
	stop = len(b)
	if c.at > from {
		start = startAfter(b, 0)
	}
	if stop > next {
		stop = startAfter(b, next-1)
	}
	if c.incomplete = max(start, stop) > len(b) && !last; c.incomplete {
		return 0, 0
	}
	start, stop = min(start, len(b)), min(stop, len(b))
	c.ended = last && stop == len(b)
	return start, stop
}

// found searches lines that were read and appends them to the chunk as a run.
func (p *parallel) found(c *chunk, f *finder, b []byte, base int64) error {
	piece := c.next()
	piece.b, piece.base, piece.size = b, base, len(b)
	if err := f.find(b, &piece.hits); err != nil {
		return err
	}
	if piece.hits.lines == 0 {
		piece.hits.lines = countLines(b)
	}
	return nil
}

// startAfter returns the position after the first newline at or after from; len(b)+1 if there is none.
func startAfter(b []byte, from int) int {
	if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(b) + 1
}
