package lines

import (
	"bytes"
	"context"
)

// finder finds the lines of a block that match, in one goroutine:
//
//	         ┌─ needles: the lines that hold one ─► walker or regexp, unless that is sure
//	block ───┼─ walker over all of it, where there are no needles or they stand too dense
//	         └─ regexp line by line, where there can be no walker
type finder struct {
	m       *Matcher
	ctx     context.Context
	hunts   hunts
	vectors seeker  // finds the same, faster; nil: hunts must do
	w       *walker // nil: not taken yet, or none is to be had
	dense   int     // blocks for which the needles are passed over
	work    int     // instructions × bytes since ctx was looked at
}

func (m *Matcher) finder(ctx context.Context) *finder {
	f := &finder{m: m, ctx: ctx, hunts: newHunts(m.needles)}
	if m.vectors != nil {
		f.vectors = m.vectors()
	}
	return f
}

// close gives the walker back.
func (f *finder) close() {
	if f.w != nil {
		f.w.ctx = nil
		f.w.pool.Put(f.w)
		f.w = nil
	}
}

// walker is nil where regexp must do.
func (f *finder) walker() *walker {
	a := f.m.auto()
	if a == nil || a.off.Load() {
		return nil
	}
	if f.w == nil {
		f.w = a.walker()
		f.w.ctx = f.ctx
	}
	return f.w
}

// find finds the lines of b, which are whole; the last of the text may lack its line end. It counts them where that costs no look of its own.
func (f *finder) find(b []byte, h *hits) error {
	whole := b
	if n := len(b); n > 0 && b[n-1] != '\n' {
		whole = b[:lastNewline(b)+1]
	}
	if err := f.findWhole(whole, h); err != nil || len(whole) == len(b) {
		return err
	}
	if h.lines > 0 {
		h.lines++
	}
	ok, err := f.matches(b[len(whole):])
	if ok {
		h.add(len(b) - 1)
	}
	return err
}

func (f *finder) findWhole(b []byte, h *hits) error {
	f.hunts.reset()
	from := 0
	if len(f.hunts) > 0 && f.dense == 0 {
		var err error
		if from, err = f.candidates(b, h); err != nil || from == len(b) {
			return err
		}
		f.dense = denseFor
	}
	f.dense = max(f.dense-1, 0)
	if w := f.walker(); w != nil {
		if w.start == matched<<w.shift {
			all(b, from, h)
			return nil
		}
		before, n := len(h.at), h.n
		if ok, err := w.walk(b, from, h, f.matches); ok || err != nil {
			return err
		}
		h.at, h.n = h.at[:before], n
		if err := f.ctx.Err(); err != nil {
			return err
		}
	}
	return f.each(b, from, h)
}

// all takes every line: the pattern matches where nothing is.
func all(b []byte, from int, h *hits) {
	if h.only {
		h.n += int64(bytes.Count(b[from:], newline))
		return
	}
	for from < len(b) {
		from = lineEnd(b, from)
		h.add(from - 1)
	}
}

// Where needles stand so dense that going to each of them costs more than walking over everything, they are passed over for a while.
const (
	denseFor   = 16  // blocks
	denseEvery = 512 // lines looked at: a minute of a log whose lines all hold its number is not the text
	denseBytes = 150 // of text for each of them: fewer are dense
)

// candidates looks only at the lines that hold a needle. It returns early, at the start of a line, where those are too many.
func (f *finder) candidates(b []byte, h *hits) (int, error) {
	lines := 0
	for pos, n, mark := 0, 0, 0; pos < len(b); {
		at, end, passed := 0, 0, 0
		if f.vectors != nil {
			at, end, passed = f.vectors.find(b, pos)
		} else {
			at, end = f.hunts.find(b, pos)
		}
		lines += passed
		if at >= len(b) {
			break
		}
		lines++
		next := lineEnd(b, at)
		if f.m.sure {
			if end <= at+len(f.m.text(b[at:next])) {
				h.add(next - 1)
			}
			pos = next
			continue
		}
		start := at
		if !f.m.head {
			start = pos + lastNewline(b[pos:at]) + 1
		}
		ok, err := f.matchesLine(b[start:next])
		if err != nil {
			return 0, err
		}
		if ok {
			h.add(next - 1)
		}
		pos = next
		if n++; n%denseEvery == 0 {
			if pos-mark < denseEvery*denseBytes && f.walker() != nil {
				return pos, nil
			}
			mark = pos
		}
	}
	if f.vectors != nil {
		h.lines = int64(lines)
	}
	return len(b), nil
}

// each asks regexp for every line.
func (f *finder) each(b []byte, from int, h *hits) error {
	for pos := from; pos < len(b); {
		next := lineEnd(b, pos)
		ok, err := f.matches(b[pos:next])
		if err != nil {
			return err
		}
		if ok {
			h.add(next - 1)
		}
		pos = next
	}
	return nil
}

// matchesLine says whether a line, which has its line end, matches.
func (f *finder) matchesLine(line []byte) (bool, error) {
	if w := f.walker(); w != nil {
		states := [1]uint16{w.start}
		row, _, ok := w.line(line, 0, states[:], 0)
		w.seen += len(line)
		if ok && row != ask<<w.shift {
			return row == hit<<w.shift, nil
		}
		if err := f.ctx.Err(); err != nil {
			return false, err
		}
	}
	return f.matches(line)
}

// matches asks regexp, and looks at the context every so often.
func (f *finder) matches(line []byte) (bool, error) {
	text := f.m.text(line)
	cost := f.m.weight * len(text)
	if f.work += cost; f.work > dear/8 { // several lines, and a machine that is busy
		f.work = 0
		if err := f.ctx.Err(); err != nil {
			return false, err
		}
	}
	if cost <= dear {
		return f.m.re.Match(text), nil
	}
	_, _, ok, err := f.m.find(f.ctx, text)
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
func (m *Matcher) text(line []byte) []byte {
	n := len(line)
	if n == 0 || line[n-1] != '\n' {
		return line
	}
	n--
	if n > 0 && line[n-1] == '\r' && !m.cr {
		n--
	}
	return line[:n]
}
