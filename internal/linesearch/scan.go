package linesearch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
)

var blocks = sync.Pool{New: func() any { b := make([]byte, defaultSizes.block); return &b }}

func (m *Matcher) scanLines(ctx context.Context, r io.Reader, t *emitter) error {
	held := blocks.Get().(*[]byte)
	defer blocks.Put(held)
	s := &lineScan{m: m, ctx: ctx, t: t, src: r, buf: (*held)[:m.sizes.block], line: 1, f: m.finder(ctx)}
	defer s.f.release()
	if again, ok := r.(sizedReaderAt); ok {
		s.again = again
	}
	err := s.scanAll()
	t.totals.Lines = s.line - 1
	t.totals.Bytes = s.base
	return err
}

// scanAll searches the text: by a sparse scan if possible, with several workers if the text is large, and from where
// these give up in this goroutine.
func (s *lineScan) scanAll() error {
	if v := s.newSparseScan(); v != nil {
		if ended, err := v.run(s.workers()); ended || err != nil {
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

// reopen makes this goroutine read on from s.base.
func (s *lineScan) reopen() {
	s.src = io.NewSectionReader(s.again, s.base, s.again.Size()-s.base)
	s.fill, s.eof = 0, false
}

func (s *lineScan) workers() int {
	if s.again == nil || s.again.Size()-s.base < s.m.sizes.large {
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
		piece := s.buf[:min(s.fill, s.m.sizes.block)]
		whole := bytes.LastIndexByte(piece, '\n') + 1
		if whole == 0 && len(piece) < s.fill {
			piece = s.buf[:s.fill]
			whole = bytes.IndexByte(piece, '\n') + 1
		}
		switch {
		case s.eof && len(piece) == s.fill:
			whole = s.fill
		case whole == 0 && len(s.buf) < s.m.sizes.held:
			bigger := make([]byte, s.m.sizes.held)
			copy(bigger, s.buf[:s.fill])
			s.buf = bigger
			continue
		case whole == 0:
			if err := s.scanLongLine(); err != nil {
				return err
			}
			continue
		}
		if err := s.block(s.buf[:whole]); err != nil {
			return err
		}
		s.discard(whole)
		s.progress(s.base)
		if s.eof && s.fill == 0 {
			return nil
		}
	}
}

// Scan passes the matching lines of r, with their context, to visit, in order and each once, and counts them. visit
// may be nil if only the totals are needed.
//
// r is UTF-8. NUL and invalid UTF-8 are matched as regexp does (an invalid byte is U+FFFD). Memory is bounded for any
// length of a line or a match: Scan holds at most 1 MiB of a line, or 4 MiB of a text with Multiline.
//
// If r is an [io.ReaderAt] with a Size method ([io.SectionReader], [bytes.Reader]), read from its start, Scan
// searches all of it. If r also has an Outer method like that of [io.SectionReader] and its result is a file that
// [mmap.Of] accepts, parts that cannot match are not read. Any other reader is also searched whole, except that with
// Multiline only its first 4 MiB are searched, see Totals.Short.
//
// After ctx is done Scan returns within about a tenth of a second, with the error of ctx and the totals so far.
func (m *Matcher) Scan(ctx context.Context, r io.Reader, o Options, visit func(Line) error) (Totals, error) {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if m.multi && o.Invert {
		return Totals{}, errors.New("invert and multiline do not go together")
	}
	t := emitter{o: o, visit: visit, quiet: visit == nil}
	var err error
	if m.multi {
		err = m.scanText(ctx, r, &t)
	} else {
		err = m.scanLines(ctx, r, &t)
	}
	if errors.Is(err, Stop) {
		err = nil
	}
	return t.totals, err
}
