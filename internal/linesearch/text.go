package linesearch

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/linesearch/literal"
)

// text searches for matches that may span lines, with the result of regexp's FindAll. It searches in steps, each from
// a position where regexp can start: the start of a line (rest), or one rune before the position (tail).
type text struct {
	m     *Matcher
	ctx   context.Context
	t     *emitter
	src   io.ReaderAt
	size  int64
	plain bool // win is the whole text, and no \r\n must be read as \n: regexp may read win

	win      []byte // the bytes in memory, from offset off
	off      int64
	buf      []byte
	runes    []byte          // buffer of readerAtRunes
	literals literal.Finders // finders of the needles in win

	line   int64   // number of the current line; all lines before it are done
	at     int64   // offset of the current line
	starts []int64 // starts of the last lines before at, for context
}

func (m *Matcher) scanText(ctx context.Context, r io.Reader, t *emitter) error {
	x := &text{m: m, ctx: ctx, t: t, line: 1, literals: literal.NewFinders(m.need.Needles)}
	if readerAtRunes, ok := r.(sizedReaderAt); ok && readerAtRunes.Size() > int64(m.sizes.text) {
		x.src, x.size = readerAtRunes, readerAtRunes.Size()
	} else if err := x.hold(r); err != nil {
		return err
	}
	err := x.run()
	t.totals.Lines = x.line - 1
	t.totals.Bytes = x.size
	return err
}

// hold reads the whole text into memory, or as many whole lines as sizes.text allows.
func (x *text) hold(r io.Reader) error {
	var b bytes.Buffer
	most := x.m.sizes.text
	if _, err := io.Copy(&b, io.LimitReader(&ctxReader{x.ctx, r}, int64(most)+1)); err != nil {
		return err
	}
	x.win = b.Bytes()
	if len(x.win) > most {
		cut := bytes.LastIndexByte(x.win[:most], '\n') + 1
		if cut == 0 {
			cut = most
		}
		x.win = x.win[:cut]
		x.t.totals.Short = true
	}
	x.size = int64(len(x.win))
	x.src = bytes.NewReader(x.win)
	x.plain = x.m.cr || !bytes.Contains(x.win, []byte("\r\n"))
	return nil
}

func (x *text) run() error {
	for pos := int64(0); pos < x.size; {
		from, err := x.candidate(pos)
		if err != nil {
			return err
		}
		if from < 0 {
			break
		}
		start, end, ok, err := x.find(from)
		if err != nil {
			return err
		}
		if !ok || start == x.size && x.endsLine() {
			break
		}
		if pos, err = x.match(start, end); err != nil {
			return err
		}
	}
	return x.finish()
}

// candidate returns the position at which to search for the next match: the start of a line at or after pos, or -1.
func (x *text) candidate(pos int64) (int64, error) {
	if len(x.literals) == 0 {
		return pos, nil
	}
	at, err := x.needle(pos)
	if err != nil || at < 0 {
		return -1, err
	}
	if !x.m.need.Near {
		return pos, nil
	}
	if err := x.walk(at); err != nil {
		return -1, err
	}
	return max(pos, x.at), nil
}

// needle returns the position of the first needle at or after pos, or -1.
func (x *text) needle(pos int64) (int64, error) {
	for {
		b, err := x.from(pos)
		if err != nil || len(b) == 0 {
			return -1, err
		}
		if i, _ := x.literals.Find(x.win, int(pos-x.off)); i < len(x.win) {
			return x.off + int64(i), nil
		}
		end := x.off + int64(len(x.win))
		if end >= x.size {
			return -1, nil
		}
		pos = max(pos, end-int64(x.literals.Longest())+1)
		if err := x.load(pos); err != nil {
			return -1, err
		}
	}
}

// match emits the lines of the match [start, end) and of all matches that share a line with that match. It returns
// the start of the next line.
func (x *text) match(start, end int64) (int64, error) {
	if err := x.walk(start); err != nil {
		return 0, err
	}
	last := start
	if end > start {
		last = end - 1
	}
	stop, err := x.lineEnd(last)
	if err != nil {
		return 0, err
	}
	if end == start {
		if end, err = x.step(end); err != nil {
			return 0, err
		}
	}
	for end < stop {
		s, e, ok, err := x.findIn(end)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		if e > stop {
			if stop, err = x.lineEnd(e - 1); err != nil {
				return 0, err
			}
		}
		if e == s {
			if e, err = x.step(e); err != nil {
				return 0, err
			}
		}
		end = e
	}
	return stop, x.emitMatch(start, stop)
}

func (x *text) emitMatch(start, stop int64) error {
	first, number := x.at, x.line
	if err := x.before(); err != nil {
		return err
	}
	at, next, err := x.lineOf(stop)
	if err != nil {
		return err
	}
	if at < stop { // the last line has no line end
		next++
	}
	var l Line
	if !x.t.quiet {
		if l, err = x.lineAt(number, first, stop, start-first); err != nil {
			return err
		}
		l.End = next - 1
	}
	if err := x.t.match(l); err != nil {
		return err
	}
	x.at, x.line = stop, next
	x.starts = x.starts[:0]
	return nil
}

// lineAt returns the line [from, to), where to is the position after its newline. A long line is cut to a window
// around position focus of the line.
func (x *text) lineAt(number, from, to, focus int64) (Line, error) {
	end := to
	tail, err := x.bytes(max(from, to-2), to)
	if err != nil {
		return Line{}, err
	}
	if bytes.HasSuffix(tail, newline) {
		end--
		if !x.m.cr && bytes.HasSuffix(tail, []byte("\r\n")) {
			end--
		}
	}
	l := Line{Number: number, End: number, Offset: from, Size: end - from}
	if l.Size <= int64(x.t.o.Window) {
		l.Text, err = x.bytes(from, end)
		return l, err
	}
	l.Column = focus + 1
	size := int64(x.t.o.Window)
	lo := max(0, min(focus-size, l.Size-2*size))
	b, err := x.bytes(from+lo, min(from+lo+2*size, end))
	if err != nil {
		return Line{}, err
	}
	w, at := Window(b, int(focus-lo), int(size))
	l.Text, l.At = w, lo+at
	return l, nil
}

// before emits the context due before the line at x.at.
func (x *text) before() error {
	due := x.t.before(x.line)
	if due <= 0 {
		return nil
	}
	ring := x.starts[max(0, len(x.starts)-int(due)):]
	for i, from := range ring {
		to := x.at
		if i+1 < len(ring) {
			to = ring[i+1]
		}
		if err := x.context(x.line-int64(len(ring)-i), from, to); err != nil {
			return err
		}
	}
	return nil
}

func (x *text) context(number, from, to int64) error {
	l, err := x.lineAt(number, from, to, 0)
	if err != nil {
		return err
	}
	l.Column = 0
	return x.t.emit(l)
}

// walk advances to the line that contains position to, and emits the context due on the way.
func (x *text) walk(to int64) error {
	for x.at < to {
		if x.t.quiet || x.t.after == 0 && x.t.o.Before == 0 {
			var err error
			x.at, x.line, err = x.lineOf(to)
			return err
		}
		end, err := x.lineEnd(x.at)
		if err != nil || to < end || end == x.size && !x.endsLine() {
			return err
		}
		if x.t.after > 0 {
			x.t.after--
			if err := x.context(x.line, x.at, end); err != nil {
				return err
			}
		}
		if keep := x.t.o.Before; keep > 0 {
			x.starts = appendLast(x.starts, x.at, keep)
		}
		x.at, x.line = end, x.line+1
	}
	return nil
}

// lineOf returns the start and the number of the line that contains position to, which is not before the current line.
func (x *text) lineOf(to int64) (at, number int64, err error) {
	at, number = x.at, x.line
	for pos := at; pos < to; {
		b, err := x.from(pos)
		if err != nil || len(b) == 0 {
			return at, number, err
		}
		b = b[:min(int64(len(b)), to-pos)]
		number += int64(bytes.Count(b, newline))
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			at = pos + int64(i) + 1
		}
		pos += int64(len(b))
	}
	return at, number, nil
}

// finish advances to the end of the text, to count all lines.
func (x *text) finish() error {
	if err := x.walk(x.size); err != nil || x.at >= x.size {
		return err
	}
	if x.t.after > 0 && !x.t.quiet { // the last line, without a line end
		x.t.after--
		if err := x.context(x.line, x.at, x.size); err != nil {
			return err
		}
	}
	x.at, x.line = x.size, x.line+1
	return nil
}

// find returns the first match at or after from, which is the start of a line.
func (x *text) find(from int64) (start, end int64, ok bool, err error) {
	re := x.m.rest
	if from == 0 {
		re = x.m.re
	}
	return x.search(re, from, 0)
}

// findIn returns the first match that starts at or after pos on the same line. pos is not the start of a line.
func (x *text) findIn(pos int64) (start, end int64, ok bool, err error) {
	b, err := x.bytes(max(0, pos-utf8.UTFMax), pos)
	if err != nil {
		return 0, 0, false, err
	}
	_, n := utf8.DecodeLastRune(b)
	return x.search(x.m.tail, pos-int64(n), 1)
}

func (x *text) search(re *regexp.Regexp, from int64, group int) (start, end int64, ok bool, err error) {
	var loc []int
	switch {
	case x.plain && int64(x.m.weight)*(x.size-from) <= expensiveWork:
		loc = re.FindSubmatchIndex(x.win[from:])
	default:
		r := &readerAtRunes{ctx: x.ctx, src: x.src, at: from, end: x.size, crlf: !x.m.cr, buf: x.runes[:0]}
		loc = re.FindReaderSubmatchIndex(r)
		x.runes, err = r.buf, r.err
	}
	if err == nil {
		err = x.ctx.Err()
	}
	if err != nil || loc == nil {
		return 0, 0, false, err
	}
	return from + int64(loc[2*group]), from + int64(loc[2*group+1]), true, nil
}

// step returns the position after the rune at pos.
func (x *text) step(pos int64) (int64, error) {
	b, err := x.bytes(pos, min(pos+utf8.UTFMax, x.size))
	if err != nil || len(b) == 0 {
		return pos + 1, err
	}
	_, n := decodeRune(b, !x.m.cr)
	return pos + int64(n), nil
}

// lineEnd returns the position after the newline of the line that contains position pos.
func (x *text) lineEnd(pos int64) (int64, error) {
	for {
		b, err := x.from(pos)
		if err != nil || len(b) == 0 {
			return pos, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return pos + int64(i) + 1, nil
		}
		pos += int64(len(b))
	}
}

func (x *text) endsLine() bool {
	b, err := x.bytes(max(0, x.size-1), x.size)
	return err == nil && bytes.Equal(b, newline)
}

// from returns the bytes in memory from pos on: at least one byte, unless the text ends at pos.
func (x *text) from(pos int64) ([]byte, error) {
	if pos >= x.size {
		return nil, nil
	}
	if pos < x.off || pos >= x.off+int64(len(x.win)) {
		if err := x.load(pos); err != nil {
			return nil, err
		}
	}
	return x.win[pos-x.off:], nil
}

// load reads the block at pos.
func (x *text) load(pos int64) error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if x.buf == nil {
		x.buf = make([]byte, x.m.sizes.block)
	}
	n, err := x.src.ReadAt(x.buf[:min(int64(len(x.buf)), x.size-pos)], pos)
	if err != nil && err != io.EOF {
		return err
	}
	if n == 0 {
		x.size = pos // the text was truncated
	}
	x.win, x.off = x.buf[:n], pos
	x.literals.Reset()
	return nil
}

// bytes returns the short range [from, to), valid until the next call.
func (x *text) bytes(from, to int64) ([]byte, error) {
	if x.off <= from && to <= x.off+int64(len(x.win)) {
		return x.win[from-x.off : to-x.off], nil
	}
	b := make([]byte, to-from)
	n, err := x.src.ReadAt(b, from)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}
