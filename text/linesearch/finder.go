package linesearch

import (
	"bytes"
	"context"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// finder finds the matching lines of a block. It belongs to one goroutine:
//
//	         ┌─ lines that hold a needle ─► walker or regexp, unless a needle suffices
//	block ───┼─ walker over the whole block
//	         └─ without a walker: regexp line by line
type finder struct {
	m        *Matcher
	ctx      context.Context
	literals literal.Finders
	searcher literal.Searcher // finds needles with vectors; nil: use literals
	w        *walker          // nil before the first call of walker, and if only regexp can be used
	dense    bool             // the block before had many lines with a needle
	letters  bool             // see Totals.Letters
	work     int              // work of regexp since the last context check, in instructions × bytes
}

// finder returns a finder that release must be called on.
func (m *Matcher) finder(ctx context.Context) *finder {
	f := &finder{m: m, ctx: ctx, literals: literal.NewFinders(m.need.Needles)}
	if m.newSearcher != nil {
		f.searcher = m.newSearcher()
	}
	return f
}

// release puts the walker back into its pool.
func (f *finder) release() {
	if f.w != nil {
		f.w.ctx = nil
		f.w.pool.Put(f.w)
		f.w = nil
	}
}

// walker returns a walker from the pool of the automaton; nil if only regexp can be used.
func (f *finder) walker() *walker {
	a := f.m.auto()
	if a == nil || a.abandoned.Load() {
		return nil
	}
	if f.w == nil {
		f.w = a.walker()
		f.w.ctx = f.ctx
	}
	return f.w
}

// find finds the matching lines of b, which consists of whole lines. The last line of the text may lack its newline.
// find also counts all lines if the search for needles yields their number.
func (f *finder) find(b []byte, h *hits) error {
	if f.m.ascii && !f.letters {
		f.letters = HasLetters(b)
	}
	h.letters = f.letters
	whole := b[:lastNewline(b)+1]
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

// findWhole is find for lines that all have a newline.
func (f *finder) findWhole(b []byte, h *hits) error {
	if len(f.literals) == 0 || f.isDense(b) {
		if w := f.walker(); w != nil {
			if ok, err := w.walkBlock(b, h, f.matches); ok || err != nil {
				return err
			}
			if err := f.ctx.Err(); err != nil {
				return err
			}
		}
	}
	if len(f.literals) > 0 {
		return f.findCandidates(b, h)
	}
	for pos := 0; pos < len(b); {
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

// isDense reports whether the automaton should walk over a block as a whole, not only over its lines with a needle.
func (f *finder) isDense(b []byte) bool {
	const rareByte = 4 << 10 // bytes of a block for each needle of one byte
	if n := &f.literals[0]; len(f.literals) == 1 && len(n.Text) == 1 && !f.m.need.Suffice {
		return bytes.Count(b, []byte(n.Text)) > len(b)/rareByte
	}
	return f.dense
}

// denseCandidates is the number of bytes of a block for each line that must be walked from its start because it has a
// needle. If a block has fewer, the automaton walks over the next block as a whole.
const denseCandidates = 512

// findCandidates checks only lines that hold a needle.
func (f *finder) findCandidates(b []byte, h *hits) error {
	f.literals.Reset()
	lines, candidates := 0, 0
	for pos := 0; pos < len(b); {
		at, end, passed := 0, 0, 0
		if f.searcher != nil {
			at, end, passed = f.searcher.Find(b, pos)
		} else {
			at, end = f.literals.Find(b, pos)
		}
		lines += passed
		if at >= len(b) {
			break
		}
		lines++
		next := lineEnd(b, at)
		ok := f.m.need.Suffice && end <= at+len(f.m.text(b[at:next])) // the needle may hold the \r of the line end
		if !f.m.need.Suffice {
			start := at
			if !f.m.need.Prefix {
				candidates++
				start = pos + lastNewline(b[pos:at]) + 1
			}
			var err error
			if ok, err = f.matchesLine(b[start:next]); err != nil {
				return err
			}
		}
		if ok {
			h.add(next - 1)
		}
		pos = next
	}
	f.dense = candidates > len(b)/denseCandidates
	if f.searcher != nil {
		h.lines = int64(lines)
	}
	return nil
}

// matchesLine reports whether a line matches, by the automaton if possible. The line includes its newline.
func (f *finder) matchesLine(line []byte) (bool, error) {
	if w := f.walker(); w != nil {
		w.q[0] = w.start
		_, ok := w.walkLine(line, 0, 0)
		if ok && w.q[0] != w.row(rowAskRegexp) {
			return w.q[0] == w.row(rowHit), nil
		}
		if err := f.ctx.Err(); err != nil {
			return false, err
		}
	}
	return f.matches(line)
}

// matches reports by regexp whether a line matches. It checks the context once per expensiveWork/8: callers search
// several lines between two checks of their own, and the machine may be busy.
func (f *finder) matches(line []byte) (bool, error) {
	text := f.m.text(line)
	cost := f.m.instructions * len(text)
	if f.work += cost; f.work > expensiveWork/8 {
		f.work = 0
		if err := f.ctx.Err(); err != nil {
			return false, err
		}
	}
	if cost <= expensiveWork {
		return f.m.re().Match(text), nil
	}
	_, _, ok, err := f.m.Find(f.ctx, text)
	return ok, err
}

// text returns a line without its line end: \n, and the \r before it unless the pattern names \r.
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

// MayMatch returns false if no part of text can match. It is many times as fast as [Matcher.Find] on a text without
// matches if the pattern has needles or is a list of words.
func (m *Matcher) MayMatch(text []byte) bool {
	switch {
	case m.multi: // text may hold \r\n where a needle has \n
		return true
	case len(m.need.Needles) > 0:
		at, _ := literal.NewFinders(m.need.Needles).Find(text, 0)
		return at < len(text)
	case !m.list: // a class may match a newline, which the automaton takes for the end of a line
		return true
	}
	f := m.finder(context.Background())
	defer f.release()
	w := f.walker()
	if w == nil {
		return true
	}
	for line := range bytes.SplitSeq(text, newline) {
		w.q[0] = w.start
		if at, ok := w.walk(line, 0, 0); !ok || at < len(line) {
			return true
		}
		if _, ok := w.walk(newline, 0, 0); !ok || w.q[0] == w.row(rowHit) {
			return true
		}
	}
	return false
}
