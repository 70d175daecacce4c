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
type parallel struct {
	s       *scan
	ctx     context.Context
	from    int64 // a line's start
	size    int64
	work    chan *chunk
	quiet   atomic.Bool // only numbers of lines are wanted from now on
	pending []*chunk    // in order
	free    []*chunk
}

// chunk is a piece of the text and what was found in it.
type chunk struct {
	at    int64 // of the text, where lines of the chunk may start …
	buf   []byte
	b     []byte // its lines
	base  int64  // of b in the text
	hits  hits
	ended bool // the text ends with it
	stuck bool // no line end was found where one was needed: b is not known
	err   error
	done  chan struct{}
}

func (c *chunk) defect() bool {
	caught := (*panics.Caught)(nil)
	return errors.As(c.err, &caught)
}

var chunks = sync.Pool{New: func() any {
	return &chunk{buf: make([]byte, 1+usual.block+usual.over), done: make(chan struct{}, 1)}
}}

// parallel goes on from s.base, and returns true at the end of the text; false leaves the line at s.base to the plain way.
func (s *scan) parallel(workers int) (bool, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	p := &parallel{s: s, ctx: ctx, from: s.base, size: s.again.Size(), work: make(chan *chunk, 2*workers)}
	p.quiet.Store(s.t.quiet)
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
			if cap(c.hits.at) <= usual.block/4 {
				chunks.Put(c)
			}
		}
	}()
	for next := p.from; ; {
		for len(p.free) > 0 && next < p.size {
			c := p.free[len(p.free)-1]
			p.free = p.free[:len(p.free)-1]
			c.at = next
			next += int64(s.m.bounds.block)
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
	if c.stuck {
		return true, nil
	}
	s := p.s
	if len(c.b) > 0 {
		s.base = c.base
		if err := s.tell(c.b, &c.hits); err != nil {
			return false, err
		}
		s.base += int64(len(c.b))
	}
	if s.t.quiet {
		p.quiet.Store(true)
	}
	s.progress(s.base)
	return c.ended, s.ctx.Err()
}

func (p *parallel) worker() {
	f := p.s.m.finder(p.ctx)
	for c := range p.work {
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

// look reads a chunk and finds its lines.
func (p *parallel) look(c *chunk, f *finder) error {
	back := 1 // so that a line end right before the chunk is seen
	if c.at == p.from {
		back = 0
	}
	from := c.at - int64(back)
	next := back + p.s.m.bounds.block // the chunk after it starts here
	buf := c.buf[:min(int64(next+p.s.m.bounds.over), p.size-from)]
	n, err := p.s.again.ReadAt(buf, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	last := n < len(buf) || from+int64(n) >= p.size // the first, where it has become shorter
	buf = buf[:n]
	start, stop := 0, n
	if back > 0 {
		start = startAfter(buf, 0)
	}
	if n > next {
		stop = startAfter(buf, next-1)
	}
	if c.stuck = max(start, stop) > n && !last; c.stuck {
		return nil
	}
	start, stop = min(start, n), min(stop, n)
	c.ended = last && stop == n
	c.b, c.base = buf[start:stop], from+int64(start)
	c.hits = hits{only: p.quiet.Load(), at: c.hits.at[:0]}
	if err := f.find(c.b, &c.hits); err != nil {
		return err
	}
	if c.hits.lines == 0 {
		c.hits.lines = countLines(c.b)
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
