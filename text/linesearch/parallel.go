package linesearch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
)

// parallel searches a large text with several workers:
//
//	offsets ─► work ─► workers: read a chunk, find its matching lines ─┐
//	   └─────► pending, in order ◄─────────────────────────────────────┘─► emitter
//
// A line belongs to the chunk in which it starts. If the last line of a chunk does not end within sizes.overlap bytes
// after the chunk, the workers give up: the caller continues at that chunk in one goroutine. The row "grep: a literal,
// two cores" of docs/SPEED.md needs the workers. [sparseScan] has larger chunks, and maps them instead of reading them.
type parallel struct {
	s         *lineScan
	ctx       context.Context
	from      int64 // offset at which the search begins: the start of a line
	size      int64
	step      int                             // distance between the starts of two chunks, in bytes
	scanChunk func(c *chunk, f *finder) error // readChunk, or sparseScan.searchChunk
	work      chan *chunk
	pending   []*chunk // chunks queued or searched but not emitted, in order
	free      []*chunk
}

// chunk is a range of the text with the lines found in it.
type chunk struct {
	at         int64 // offset of the chunk in the text; its first line starts here or later
	buf        []byte
	runs       []lineRun // runs of the chunk's lines
	ended      bool      // the text ends with this chunk
	incomplete bool      // the workers give up: lines are missing after runs
	err        error
	done       chan struct{}
}

// lineRun is a run of adjacent lines.
type lineRun struct {
	base int64  // offset in the text
	size int    // length of the lines in bytes
	b    []byte // the lines; nil if they were not read because none matches
	hits hits
}

// addRun appends a run to the chunk and returns the run, which reuses the memory of an earlier run.
func (c *chunk) addRun() *lineRun {
	c.runs = slices.Grow(c.runs, 1)[:len(c.runs)+1]
	run := &c.runs[len(c.runs)-1]
	*run = lineRun{hits: hits{at: run.hits.at[:0]}}
	return run
}

// scanParallel searches the text from s.base with several workers. It returns false if the workers give up: the caller
// must then continue at s.base.
func (s *lineScan) scanParallel(workers int) (bool, error) {
	p := &parallel{s: s, from: s.base, size: s.readerAt.Size(), step: s.m.sizes.block}
	p.scanChunk = p.readChunk
	return p.run(workers)
}

// run searches the text in chunks. It returns false if the workers give up.
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

// emitChunk emits the lines of a chunk. It returns true if no further chunk may be emitted.
func (p *parallel) emitChunk(c *chunk) (bool, error) {
	if c.err != nil {
		return false, panics.Again(c.err)
	}
	s := p.s
	for i := range c.runs {
		run := &c.runs[i]
		if run.base != s.base { // the file changed between two reads: the caller continues after the lines emitted
			c.incomplete = true
			break
		}
		if err := s.emitBlock(run.b, &run.hits); err != nil {
			return false, err
		}
		s.base += int64(run.size)
	}
	s.progress(s.base)
	return c.ended || c.incomplete, s.ctx.Err()
}

// worker searches the chunks queued in p.work.
func (p *parallel) worker() {
	f := p.s.m.finder(p.ctx)
	for c := range p.work {
		c.runs, c.ended, c.incomplete = c.runs[:0], false, false
		if c.err = p.ctx.Err(); c.err == nil {
			panics.Into(&c.err, func() { c.err = p.scanChunk(c, f) })
			if c.err != nil {
				f = p.s.m.finder(p.ctx) // a panic may have left the old finder in any state
			}
		}
		c.done <- struct{}{}
		runtime.Gosched() // the scheduler lets a goroutine run for 10 ms; with many searches a small call would wait long
	}
	f.release()
}

// readChunk reads a chunk and finds its matching lines.
func (p *parallel) readChunk(c *chunk, f *finder) error {
	from, n := p.readRange(c)
	buf := c.buf[:n]
	n, err := p.s.readerAt.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start, stop := p.lineRange(c, from, buf[:n], n < len(buf))
	if start == stop {
		return nil
	}
	return p.searchRun(c, f, buf[start:stop], from+int64(start))
}

// readRange returns the offset and the number of bytes that the search of a chunk needs: one byte before the chunk, to
// see a line end there, and sizes.overlap bytes after the chunk, for the end of its last line.
func (p *parallel) readRange(c *chunk) (from int64, n int) {
	from, n = c.at, p.step+p.s.m.sizes.overlap
	if c.at != p.from {
		from, n = from-1, n+1
	}
	return from, int(min(int64(n), p.size-from))
}

// lineRange returns the start and end, in b, of the lines of a chunk. from is the offset of b in the text. short is
// true if the text was truncated.
func (p *parallel) lineRange(c *chunk, from int64, b []byte, short bool) (start, stop int) {
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

// searchRun searches lines that were read and appends them to the chunk as a run.
func (p *parallel) searchRun(c *chunk, f *finder, b []byte, base int64) error {
	run := c.addRun()
	run.b, run.base, run.size = b, base, len(b)
	if err := f.find(b, &run.hits); err != nil {
		return err
	}
	if run.hits.lines == 0 {
		run.hits.lines = countLines(b)
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
