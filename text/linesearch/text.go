package linesearch

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// textScan searches for matches that may span lines, with the result of regexp's FindAll. It searches in steps. Each
// starts where one of the two forms of the pattern can start: at the start of a line (rest), or one rune before a
// position within a line (tail), see [Matcher].
type textScan struct {
	m     *Matcher
	ctx   context.Context
	out   *emitter
	src   io.ReaderAt
	size  int64
	plain bool // win is the whole text and holds no \r\n that must be read as \n: regexp may search win

	win      []byte // the bytes in memory, from offset off
	off      int64
	buf      []byte          // buffer of load
	runes    []byte          // buffer of readerAtRunes
	literals literal.Finders // finders of the needles in win

	line   int64   // number of the current line; the lines before it were emitted or skipped
	at     int64   // offset of the current line
	starts []int64 // starts of the last lines before at, for context
}

// scanText searches for matches that may span lines.
func (m *Matcher) scanText(ctx context.Context, r io.Reader, out *emitter) error {
	x := &textScan{m: m, ctx: ctx, out: out, line: 1, literals: literal.NewFinders(m.need.Needles)}
	if src, ok := r.(sizedReaderAt); ok && src.Size() > int64(m.sizes.text) {
		x.src, x.size = src, src.Size()
	} else if err := x.readText(r); err != nil {
		return err
	}
	err := x.run()
	out.totals.Lines = x.line - 1
	out.totals.Bytes = x.size
	return err
}

// readText reads the whole text into memory, or as many whole lines as sizes.text allows.
func (x *textScan) readText(r io.Reader) error {
	limit := x.m.sizes.text
	for s := (lineScan{ctx: x.ctx, src: r}); len(x.win) <= limit && !s.eof; {
		if len(x.win) == cap(x.win) {
			x.win = slices.Grow(x.win, len(x.win)+4<<10) // doubles the capacity
		}
		n, err := s.readSome(x.win[len(x.win):min(cap(x.win), limit+1)])
		if err != nil {
			return err
		}
		x.win = x.win[:len(x.win)+n]
	}
	if len(x.win) > limit {
		cut := bytes.LastIndexByte(x.win[:limit], '\n') + 1
		if cut == 0 {
			cut = limit
		}
		x.win = x.win[:cut]
		x.out.totals.Short = true
	}
	x.m.see(x.win, &x.out.totals)
	x.size = int64(len(x.win))
	x.src = bytes.NewReader(x.win)
	x.plain = x.m.cr || !bytes.Contains(x.win, []byte("\r\n"))
	return nil
}

func (x *textScan) run() error {
	for pos := int64(0); pos < x.size; {
		from, err := x.candidate(pos)
		if err != nil {
			return err
		}
		if from < 0 {
			break
		}
		start, end, ok, err := x.findFromLine(from)
		if err != nil {
			return err
		}
		if !ok || start == x.size && x.endsWithNewline() {
			break
		}
		if pos, err = x.expandMatch(start, end); err != nil {
			return err
		}
	}
	return x.finish()
}

// candidate returns the start of a line, at or after pos, from which to search for the next match; -1 if there is none.
func (x *textScan) candidate(pos int64) (int64, error) {
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
	if err := x.advance(at); err != nil {
		return -1, err
	}
	return max(pos, x.at), nil
}

// needle returns the position of the first needle at or after pos, or -1.
func (x *textScan) needle(pos int64) (int64, error) {
	for {
		b, err := x.bytesFrom(pos)
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

// expandMatch emits the lines of the match [start, end), extended by the matches that share a line with it. It returns
// the start of the next line.
func (x *textScan) expandMatch(start, end int64) (int64, error) {
	if err := x.advance(start); err != nil {
		return 0, err
	}
	stop, err := x.lineEnd(max(start, end-1)) // the end of the last line
	if err != nil {
		return 0, err
	}
	from := start
	for ok := true; ok; {
		if end == from { // the match is empty
			if end, err = x.step(end); err != nil {
				return 0, err
			}
		}
		if end >= stop {
			break
		}
		if from, end, ok, err = x.findInLine(end); err != nil {
			return 0, err
		}
		if ok && end > stop {
			if stop, err = x.lineEnd(end - 1); err != nil {
				return 0, err
			}
		}
	}
	return stop, x.emitMatch(start, stop)
}

// emitMatch emits the lines up to stop as one match, which begins in the current line at position start.
func (x *textScan) emitMatch(start, stop int64) error {
	first, number := x.at, x.line
	if err := x.emitBefore(); err != nil {
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
	if !x.out.quiet {
		if l, err = x.lineAt(number, first, stop, start-first); err != nil {
			return err
		}
		l.End = next - 1
	}
	if err := x.out.match(l); err != nil {
		return err
	}
	x.at, x.line = stop, next
	x.starts = x.starts[:0]
	return nil
}

// lineAt returns the line or lines [from, to), where to is the position after the last newline. It truncates a text
// longer than Options.Window to a window around position focus of the text.
func (x *textScan) lineAt(number, from, to, focus int64) (Line, error) {
	end := to
	tail, err := x.readRange(max(from, to-2), to)
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
	if l.Size <= int64(x.out.Window) {
		l.Text, err = x.readRange(from, end)
		return l, err
	}
	l.Column = focus + 1
	size := int64(x.out.Window)
	lo := max(0, min(focus-size, l.Size-2*size))
	b, err := x.readRange(from+lo, min(from+lo+2*size, end))
	if err != nil {
		return Line{}, err
	}
	w, at := Window(b, int(focus-lo), int(size))
	l.Text, l.At = w, lo+at
	return l, nil
}

// emitBefore emits the context due before the current line.
func (x *textScan) emitBefore() error {
	due := x.out.before(x.line)
	if due <= 0 {
		return nil
	}
	starts := x.starts[max(0, len(x.starts)-int(due)):]
	for i, from := range starts {
		to := x.at
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		if err := x.context(x.line-int64(len(starts)-i), from, to); err != nil {
			return err
		}
	}
	return nil
}

// context emits the line [from, to) as context.
func (x *textScan) context(number, from, to int64) error {
	l, err := x.lineAt(number, from, to, 0)
	if err != nil {
		return err
	}
	l.Column = 0
	return x.out.emit(l)
}

// advance makes the line that contains position to the current line, and emits the lines before it that are due as
// context of the last match.
func (x *textScan) advance(to int64) error {
	for x.at < to {
		if x.out.quiet || x.out.contextLeft == 0 && x.out.Before == 0 {
			var err error
			x.at, x.line, err = x.lineOf(to)
			return err
		}
		end, err := x.lineEnd(x.at)
		if err != nil || to < end || end == x.size && !x.endsWithNewline() {
			return err
		}
		if x.out.contextLeft > 0 {
			x.out.contextLeft--
			if err := x.context(x.line, x.at, end); err != nil {
				return err
			}
		}
		if keep := x.out.Before; keep > 0 {
			x.starts = appendLast(x.starts, x.at, keep)
		}
		x.at, x.line = end, x.line+1
	}
	return nil
}

// lineOf returns the start and the number of the line that contains position to, which is not before the current line.
func (x *textScan) lineOf(to int64) (at, number int64, err error) {
	at, number = x.at, x.line
	for pos := at; pos < to; {
		b, err := x.bytesFrom(pos)
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

// finish advances to the end of the text, so that all lines are counted.
func (x *textScan) finish() error {
	if err := x.advance(x.size); err != nil || x.at >= x.size {
		return err
	}
	if x.out.contextLeft > 0 { // the last line, without a line end
		x.out.contextLeft--
		if err := x.context(x.line, x.at, x.size); err != nil {
			return err
		}
	}
	x.at, x.line = x.size, x.line+1
	return nil
}

// findFromLine returns the first match at or after from, which must be the start of a line.
func (x *textScan) findFromLine(from int64) (start, end int64, ok bool, err error) {
	re := x.m.rest
	if from == 0 {
		re = x.m.re()
	}
	return x.search(re, from, 0)
}

// findInLine returns the first match that starts at or after pos on the same line. pos must not be the start of a line.
func (x *textScan) findInLine(pos int64) (start, end int64, ok bool, err error) {
	b, err := x.readRange(max(0, pos-utf8.UTFMax), pos)
	if err != nil {
		return 0, 0, false, err
	}
	_, n := utf8.DecodeLastRune(b)
	return x.search(x.m.tail(), pos-int64(n), 1)
}

// search returns the range of a group of the first match of re in the text from position from.
func (x *textScan) search(re *regexp.Regexp, from int64, group int) (start, end int64, ok bool, err error) {
	var loc []int
	switch {
	case x.plain && int64(x.m.instructions)*(x.size-from) <= expensiveWork:
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
func (x *textScan) step(pos int64) (int64, error) {
	b, err := x.readRange(pos, min(pos+utf8.UTFMax, x.size))
	if err != nil || len(b) == 0 {
		return pos + 1, err
	}
	_, n := decodeRune(b, !x.m.cr)
	return pos + int64(n), nil
}

// lineEnd returns the position after the newline of the line that contains position pos.
func (x *textScan) lineEnd(pos int64) (int64, error) {
	for {
		b, err := x.bytesFrom(pos)
		if err != nil || len(b) == 0 {
			return pos, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return pos + int64(i) + 1, nil
		}
		pos += int64(len(b))
	}
}

// endsWithNewline reports whether the last byte of the text is a newline.
func (x *textScan) endsWithNewline() bool {
	b, err := x.readRange(max(0, x.size-1), x.size)
	return err == nil && bytes.Equal(b, newline)
}

// bytesFrom returns the bytes in memory from position pos, and loads a block if there are none. The result is empty
// only at the end of the text.
func (x *textScan) bytesFrom(pos int64) ([]byte, error) {
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

// load reads the block at position pos into memory.
func (x *textScan) load(pos int64) error {
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
	x.m.see(x.win, &x.out.totals)
	x.literals.Reset()
	return nil
}

// readRange returns the bytes [from, to), valid until the next block is loaded.
func (x *textScan) readRange(from, to int64) ([]byte, error) {
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
