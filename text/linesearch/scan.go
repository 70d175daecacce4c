package linesearch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
)

// blocks reuses buffers: a search of a tree reads one file after the other.
var blocks = sync.Pool{New: func() any { b := make([]byte, defaultSizes.block); return &b }}

// scanLines searches line by line.
func (m *Matcher) scanLines(ctx context.Context, r io.Reader, out *emitter) error {
	buf := blocks.Get().(*[]byte)
	defer blocks.Put(buf)
	s := &lineScan{m: m, ctx: ctx, out: out, src: r, buf: (*buf)[:m.sizes.block], line: 1, f: m.finder(ctx)}
	defer s.f.release()
	s.readerAt, _ = r.(sizedReaderAt)
	err := s.scanAll()
	out.totals.Lines = s.line - 1
	out.totals.Bytes = s.base
	return err
}

// scanAll searches the text: first by a sparse scan if possible, then with several workers if the text is large. If the
// workers give up, this goroutine continues at their position.
func (s *lineScan) scanAll() error {
	if sparse := s.newSparseScan(); sparse != nil {
		if ended, err := sparse.run(s.workers()); ended || err != nil {
			return err
		}
		s.reopen()
	}
	if n := s.workers(); n > 1 {
		if ended, err := s.scanParallel(n); ended || err != nil {
			return err
		}
		s.reopen()
	}
	return s.run()
}

// reopen makes s.read continue at s.base.
func (s *lineScan) reopen() {
	s.src = io.NewSectionReader(s.readerAt, s.base, s.readerAt.Size()-s.base)
	s.fill, s.eof = 0, false
}

// workers returns the number of workers for the rest of the text.
func (s *lineScan) workers() int {
	if s.readerAt == nil || s.readerAt.Size()-s.base < s.m.sizes.large {
		return 1
	}
	return min(s.m.sizes.workers, runtime.GOMAXPROCS(0))
}

// run searches to the end of the text.
func (s *lineScan) run() error {
	for {
		if err := s.read(); err != nil {
			return err
		}
		b := s.buf[:min(s.fill, s.m.sizes.block)]
		whole := bytes.LastIndexByte(b, '\n') + 1 // length of the whole lines
		if whole == 0 && len(b) < s.fill {
			b = s.buf[:s.fill]
			whole = bytes.IndexByte(b, '\n') + 1
		}
		switch {
		case s.eof && len(b) == s.fill:
			whole = s.fill
		case whole == 0 && len(s.buf) < s.m.sizes.held:
			larger := make([]byte, s.m.sizes.held)
			copy(larger, s.buf[:s.fill])
			s.buf = larger
			continue
		case whole == 0:
			s.m.see(s.buf[:s.fill], &s.out.totals)
			if err := s.scanLongLine(); err != nil {
				return err
			}
			continue
		}
		if err := s.scanBlock(s.buf[:whole]); err != nil {
			return err
		}
		s.discard(whole)
		s.progress(s.base)
		runtime.Gosched() // as for each chunk of a parallel search
		if s.eof && s.fill == 0 {
			return nil
		}
	}
}

// Scan passes the matching lines of r and their context to visit, in order and each once, and counts the matches. visit
// may be nil if only the totals are needed.
//
// r is UTF-8. Scan matches NUL and invalid UTF-8 as regexp does (an invalid byte is U+FFFD). Memory is bounded for any
// length of a line or a match: Scan holds at most 1 MiB of a line, or 4 MiB of a text with Multiline.
//
// Scan searches all of r, with one exception: with Multiline, only the first 4 MiB (see Totals.Short) if r is not an
// [io.ReaderAt] with a Size method, such as [io.SectionReader] and [bytes.Reader]. Nothing may have been read from such
// an r before. If r also has an Outer method like that of [io.SectionReader] that returns a file which [mmap.Of]
// accepts, Scan does not read parts that cannot match.
//
// After ctx is done Scan returns within about a tenth of a second, with the error of ctx and the totals so far.
func (m *Matcher) Scan(ctx context.Context, r io.Reader, o Options, visit func(Line) error) (Totals, error) {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if m.multi && o.Invert {
		return Totals{}, errors.New("invert and multiline do not go together")
	}
	out := emitter{Options: o, visit: visit, quiet: visit == nil}
	var err error
	if m.multi {
		err = m.scanText(ctx, r, &out)
	} else {
		err = m.scanLines(ctx, r, &out)
	}
	if errors.Is(err, Stop) {
		err = nil
	}
	return out.totals, err
}
