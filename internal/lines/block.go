package lines

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// bounds are the sizes of what is held of a text. Tests make them small, so that every border is met.
type bounds struct {
	block   int // read at once: stays in the L2 cache
	held    int // a longer line is searched in pieces
	history int // of a long line that was already looked at: for needles over a border, and for the window around a match
	text    int // held whole where matches may reach over line ends; a longer one is read again for each search
}

var usual = bounds{block: 256 << 10, held: 1 << 20, history: 64 << 10, text: 4 << 20}

// sized is a reader that can be read again.
type sized interface {
	io.ReaderAt
	Size() int64
}

// scan goes through a text line by line:
//
//	fill ── a block of whole lines ─► block ── needle? ─► candidate line ── regexp ─► teller
//	  └──── 1 MiB without a line end ─► long (long.go)
type scan struct {
	m   *Matcher
	ctx context.Context
	t   *teller

	src   io.Reader
	again io.ReaderAt // nil where the text can be read only once
	eof   bool

	buf  []byte // what was read and not looked at is buf[:fill]
	fill int
	base int64 // offset of buf[0] in the text
	line int64 // number of the line at buf[0]

	hunts hunts
	tail  []Line // the last lines before buf[0], for context; Text is their own copy
	work  int    // instructions × bytes since ctx was looked at
}

var blocks = sync.Pool{New: func() any { b := make([]byte, usual.block); return &b }}

func (m *Matcher) scanLines(ctx context.Context, r io.Reader, t *teller) error {
	held := blocks.Get().(*[]byte)
	defer blocks.Put(held)
	s := &scan{m: m, ctx: ctx, t: t, src: r, buf: (*held)[:m.bounds.block], line: 1, hunts: newHunts(m.needles)}
	if again, ok := r.(sized); ok {
		s.again = again
	}
	err := s.run()
	t.totals.Lines = s.line - 1
	t.totals.Bytes = s.base
	return err
}

func (s *scan) run() error {
	for {
		if err := s.read(); err != nil {
			return err
		}
		whole := bytes.LastIndexByte(s.buf[:s.fill], '\n') + 1
		switch {
		case s.eof:
			whole = s.fill
		case whole == 0 && len(s.buf) < s.m.bounds.held:
			bigger := make([]byte, s.m.bounds.held)
			copy(bigger, s.buf[:s.fill])
			s.buf = bigger
			continue
		case whole == 0:
			if err := s.long(); err != nil {
				return err
			}
			continue
		}
		if err := s.block(s.buf[:whole]); err != nil {
			return err
		}
		s.drop(whole)
		if s.eof && s.fill == 0 {
			return nil
		}
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
	s.hunts.reset()
	first := s.line
	var err error
	switch {
	case s.t.o.Invert || len(s.hunts) == 0:
		err = s.each(b)
	default:
		err = s.candidates(b)
	}
	if err != nil {
		return err
	}
	s.remember(b, first)
	return nil
}

// candidates looks only at the lines that hold a needle.
func (s *scan) candidates(b []byte) error {
	for pos := 0; pos < len(b); {
		at, end := s.hunts.find(b, pos)
		if at >= len(b) {
			return s.pass(b, pos, len(b))
		}
		start := pos + bytes.LastIndexByte(b[pos:at], '\n') + 1
		if err := s.pass(b, pos, start); err != nil {
			return err
		}
		next := lineEnd(b, at)
		text := s.text(b[start:next])
		hit := s.m.sure && end <= start+len(text)
		if !s.m.sure {
			var err error
			if hit, err = s.matches(text); err != nil {
				return err
			}
		}
		if err := s.one(b, start, next, text, hit); err != nil {
			return err
		}
		pos = next
	}
	return nil
}

// each looks at every line.
func (s *scan) each(b []byte) error {
	for pos := 0; pos < len(b); {
		next := lineEnd(b, pos)
		text := s.text(b[pos:next])
		hit := false
		at, end := 0, 0
		if len(s.hunts) > 0 {
			at, end = s.hunts.find(b, pos)
		}
		switch {
		case at >= next:
		case s.m.sure:
			hit = end <= pos+len(text)
		default:
			var err error
			if hit, err = s.matches(text); err != nil {
				return err
			}
		}
		if err := s.one(b, pos, next, text, hit != s.t.o.Invert); err != nil {
			return err
		}
		pos = next
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
		if err := s.one(b, from, next, s.text(b[from:next]), false); err != nil {
			return err
		}
		from = next
	}
	s.line += int64(bytes.Count(b[from:to], newline))
	if to == len(b) && from < to && b[to-1] != '\n' {
		s.line++ // the text's last line, without a line end
	}
	return nil
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
		at = bytes.LastIndexByte(b[:at-1], '\n') + 1
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
		if err := s.t.tell(s.context(n-int64(i)-1, starts[i], s.text(b[starts[i]:end]))); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps the last lines of a block whose first line is number first, for context in the next one.
func (s *scan) remember(b []byte, first int64) {
	keep := s.t.o.Before
	if keep == 0 || s.t.quiet || s.eof {
		return
	}
	var lines []Line
	for at, n := len(b), s.line-1; at > 0 && len(lines) < keep && n >= first; n-- {
		end := at
		at = bytes.LastIndexByte(b[:at-1], '\n') + 1
		l := s.context(n, at, s.text(b[at:end]))
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

// matches asks the regexp, and looks at the context every so often.
func (s *scan) matches(text []byte) (bool, error) {
	cost := s.m.weight * len(text)
	if s.work += cost; s.work > dear/8 { // several lines, and a machine that is busy
		s.work = 0
		if err := s.ctx.Err(); err != nil {
			return false, err
		}
	}
	if cost <= dear {
		return s.m.re.Match(text), nil
	}
	_, _, ok, err := s.m.find(s.ctx, text)
	return ok, err
}

var newline = []byte{'\n'}

// lineEnd is the byte after the line end that follows from.
func lineEnd(b []byte, from int) int {
	if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(b)
}

// text is a line without its line end: \n, and the \r before it unless the pattern speaks of \r.
func (s *scan) text(line []byte) []byte {
	n := len(line)
	if n == 0 || line[n-1] != '\n' {
		return line
	}
	n--
	if n > 0 && line[n-1] == '\r' && !s.m.cr {
		n--
	}
	return line[:n]
}
