package lines

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"
)

// bounds are the sizes of what is held of a text. Tests make them small, so that every border is met.
type bounds struct {
	block   int // read at once: stays in the L2 cache
	held    int // a longer line is searched in pieces
	history int // of a long line that was already looked at: for needles over a border, and for the window around a match
	text    int // held whole where matches may reach over line ends; a longer one is read again for each search

	large   int64 // a text is searched by several workers
	workers int   // … as many, or as there are cores
	over    int   // read beyond a chunk for the end of its last line
}

var usual = bounds{block: 256 << 10, held: 1 << 20, history: 64 << 10, text: 4 << 20, large: 8 << 20, workers: 2, over: 16 << 10}

// sized is a reader that can be read again.
type sized interface {
	io.ReaderAt
	Size() int64
}

// scan goes through a text line by line:
//
//	fill ── a block of whole lines ─► finder ─► the lines that match ─► teller
//	  └──── 1 MiB without a line end ─► long (long.go)
type scan struct {
	m   *Matcher
	ctx context.Context
	t   *teller

	src   io.Reader
	again sized // nil where the text can be read only once
	eof   bool

	until int64  // where the plain way ends, for several workers to go on; 0: nowhere
	buf   []byte // what was read and not looked at is buf[:fill]
	fill  int
	base  int64 // offset of buf[0] in the text
	line  int64 // number of the line at buf[0]

	f    *finder
	hits hits   // of the block that is looked at
	tail []Line // the last lines before buf[0], for context; Text is their own copy
}

var blocks = sync.Pool{New: func() any { b := make([]byte, usual.block); return &b }}

func (m *Matcher) scanLines(ctx context.Context, r io.Reader, t *teller) error {
	held := blocks.Get().(*[]byte)
	defer blocks.Put(held)
	s := &scan{m: m, ctx: ctx, t: t, src: r, buf: (*held)[:m.bounds.block], line: 1, f: m.finder(ctx)}
	defer s.f.close()
	if again, ok := r.(sized); ok {
		s.again = again
	}
	err := s.all()
	t.totals.Lines = s.line - 1
	t.totals.Bytes = s.base
	return err
}

// all goes through the text: without reading what needs not be, or with several workers where it is large, and through what they
// cannot do by itself.
func (s *scan) all() error {
	if v := s.survey(); v != nil {
		if ended, err := v.run(s.workers()); ended || err != nil {
			return err
		}
		s.goOn()
	}
	for ended := false; !ended; {
		if n := s.workers(); n > 1 {
			ended, err := s.parallel(n)
			if ended || err != nil {
				return err
			}
			s.goOn()
			s.until = s.base + int64(16*s.m.bounds.block)
		}
		var err error
		if ended, err = s.run(); err != nil {
			return err
		}
	}
	return nil
}

// goOn has the plain way read from s.base on.
func (s *scan) goOn() {
	s.src = io.NewSectionReader(s.again, s.base, s.again.Size()-s.base)
	s.fill, s.eof = 0, false
}

func (s *scan) workers() int {
	if s.again == nil || s.again.Size()-s.base < s.m.bounds.large {
		return 1
	}
	return min(s.m.bounds.workers, runtime.GOMAXPROCS(0))
}

// run goes through the text, or as far as s.until, and says whether that was its end.
func (s *scan) run() (bool, error) {
	for s.until == 0 || s.base < s.until || s.workers() == 1 {
		if err := s.read(); err != nil {
			return false, err
		}
		piece := s.buf[:min(s.fill, s.m.bounds.block)]
		whole := bytes.LastIndexByte(piece, '\n') + 1
		if whole == 0 && len(piece) < s.fill {
			piece = s.buf[:s.fill]
			whole = bytes.IndexByte(piece, '\n') + 1
		}
		switch {
		case s.eof && len(piece) == s.fill:
			whole = s.fill
		case whole == 0 && len(s.buf) < s.m.bounds.held:
			bigger := make([]byte, s.m.bounds.held)
			copy(bigger, s.buf[:s.fill])
			s.buf = bigger
			continue
		case whole == 0:
			if err := s.long(); err != nil {
				return false, err
			}
			continue
		}
		if err := s.block(s.buf[:whole]); err != nil {
			return false, err
		}
		s.drop(whole)
		s.progress(s.base)
		if s.eof && s.fill == 0 {
			return true, nil
		}
	}
	return false, nil
}

func (s *scan) progress(done int64) {
	if s.t.o.Progress != nil {
		s.t.o.Progress(done)
	}
}

// read fills the buffer as far as it goes.
func (s *scan) read() error {
	for idle := 0; s.fill < len(s.buf) && !s.eof; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		n, err := s.src.Read(s.buf[s.fill:])
		s.fill += n
		switch {
		case err == io.EOF:
			s.eof = true
		case err != nil:
			return err
		case n > 0:
			idle = 0
		default:
			if idle++; idle == 100 {
				return io.ErrNoProgress
			}
		}
	}
	return s.ctx.Err()
}

// drop forgets the first n bytes, which were looked at; s.line was counted on the way.
func (s *scan) drop(n int) {
	s.base += int64(n)
	s.fill = copy(s.buf, s.buf[n:s.fill])
}

// block looks through whole lines, the last of which may lack its line end at the end of the text.
func (s *scan) block(b []byte) error {
	s.hits = hits{only: s.t.quiet, at: s.hits.at[:0]}
	if err := s.f.find(b, &s.hits); err != nil {
		return err
	}
	return s.tell(b, &s.hits)
}

// tell tells and counts the lines of a block.
func (s *scan) tell(b []byte, h *hits) error {
	first, pos, told := s.line, 0, int64(0)
	for _, at := range h.at {
		if s.t.quiet {
			break
		}
		start, next := pos+lastNewline(b[pos:at])+1, int(at)+1
		if err := s.between(b, pos, start); err != nil {
			return err
		}
		if err := s.one(b, start, next, s.m.text(b[start:next]), !s.t.o.Invert); err != nil {
			return err
		}
		pos = next
		told++
	}
	if !s.t.quiet {
		if pos == 0 && h.lines > 0 && s.t.after == 0 && !s.t.o.Invert {
			s.line += h.lines
		} else if err := s.between(b, pos, len(b)); err != nil {
			return err
		}
		s.remember(b, first)
		return nil
	}
	n, hits := h.lines, h.n-told
	if n == 0 || pos > 0 {
		n = countLines(b[pos:])
	}
	s.line += n
	if s.t.o.Invert {
		hits = n - hits
	}
	s.t.totals.Matches += hits
	return nil
}

// between goes over lines that the pattern does not match.
func (s *scan) between(b []byte, from, to int) error {
	if !s.t.o.Invert {
		return s.pass(b, from, to)
	}
	for from < to {
		next := lineEnd(b, from)
		if err := s.one(b, from, next, s.m.text(b[from:next]), true); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// one tells the line b[start:next], where it is a match or context is due.
func (s *scan) one(b []byte, start, next int, text []byte, hit bool) error {
	n := s.line
	s.line++
	if !hit {
		if s.t.after == 0 {
			return nil
		}
		s.t.after--
		return s.t.tell(s.context(n, start, text))
	}
	if s.t.quiet {
		return s.t.match(Line{})
	}
	if err := s.before(b, start, n); err != nil {
		return err
	}
	l := Line{Number: n, End: n, Offset: s.base + int64(start), Size: int64(len(text)), Text: text}
	if len(text) > s.t.o.Window {
		if !s.t.o.Invert {
			from, _, _, err := s.m.find(s.ctx, text)
			if err != nil {
				return err
			}
			l.Column = int64(from) + 1
		}
		l.Text, l.At = Window(text, int(max(l.Column-1, 0)), s.t.o.Window)
	}
	return s.t.match(l)
}

// pass goes over lines that do not match, telling those that are still due as context.
func (s *scan) pass(b []byte, from, to int) error {
	for from < to && s.t.after > 0 {
		next := lineEnd(b, from)
		if err := s.one(b, from, next, s.m.text(b[from:next]), false); err != nil {
			return err
		}
		from = next
	}
	s.line += countLines(b[from:to])
	return nil
}

// countLines is how many lines b holds, the last with or without its line end.
func countLines(b []byte) int64 {
	n := int64(bytes.Count(b, newline))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// context is line n, which starts at b[start], as it is told beside a match.
func (s *scan) context(n int64, start int, text []byte) Line {
	l := Line{Number: n, End: n, Offset: s.base + int64(start), Size: int64(len(text))}
	l.Text, l.At = Window(text, 0, s.t.o.Window)
	return l
}

// before tells the lines due before line n, which starts at b[start].
func (s *scan) before(b []byte, start int, n int64) error {
	due := int(s.t.before(n))
	if due <= 0 {
		return nil
	}
	starts := make([]int, 0, due)
	for at := start; at > 0 && len(starts) < due; {
		at = lastNewline(b[:at-1]) + 1
		starts = append(starts, at)
	}
	for _, l := range s.tail[max(0, len(s.tail)-(due-len(starts))):] {
		if err := s.t.tell(l); err != nil {
			return err
		}
	}
	for i := len(starts) - 1; i >= 0; i-- {
		end := start
		if i > 0 {
			end = starts[i-1]
		}
		if err := s.t.tell(s.context(n-int64(i)-1, starts[i], s.m.text(b[starts[i]:end]))); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps the last lines of a block whose first line is number first, for context in the next one.
func (s *scan) remember(b []byte, first int64) {
	keep := s.t.o.Before
	if keep == 0 || s.t.quiet || s.eof && len(b) == s.fill {
		return
	}
	var lines []Line
	for at, n := len(b), s.line-1; at > 0 && len(lines) < keep && n >= first; n-- {
		end := at
		at = lastNewline(b[:at-1]) + 1
		l := s.context(n, at, s.m.text(b[at:end]))
		l.Text = bytes.Clone(l.Text)
		lines = append(lines, l)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		s.keep(lines[i])
	}
}

// keep adds one line to the tail.
func (s *scan) keep(l Line) {
	if len(s.tail) >= s.t.o.Before {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-s.t.o.Before+1:]...)
	}
	s.tail = append(s.tail, l)
}
