package linesearch

import (
	"context"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// finder finds the matching lines of a block. It belongs to one goroutine:
//
//	         ┌─ lines that hold a needle ─► walker or regexp, unless a needle suffices
//	block ───┼─ lines that hold a word, if the pattern is a list of words
//	         ├─ lines that hold a byte of each match, if the pattern has no needles and few lines do
//	         ├─ walker over the whole block
//	         └─ without a walker: a row of characters at once, or regexp line by line
type finder struct {
	m        *Matcher
	ctx      context.Context
	literals literal.Finders
	searcher literal.Searcher // finds needles with vectors; nil: use literals
	w        *walker          // nil before the first call of walker, and if only regexp can be used
	dense    bool             // the block before had many lines with a needle
	letters  bool             // see Totals.Letters
	ends     []uint32         // buffer of findWords
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
	switch {
	case f.m.words != nil && (f.dense || len(f.literals) == 0):
		return f.findWords(b, h)
	case len(f.literals) > 0 && !(f.dense && f.m.words == nil && f.m.linear() != nil):
		return f.findCandidates(b, h)
	}
	if f.dense {
		return f.m.linear().find(b, !f.m.cr, h, f.matches)
	}
	if ok, err := f.findMarked(b, h); ok || err != nil {
		return err
	}
	if w := f.walker(); w != nil {
		if ok, err := w.walkBlock(b, h, f.matches); ok || err != nil {
			return err
		}
		if err := f.ctx.Err(); err != nil {
			return err
		}
	}
	if l := f.m.linear(); l != nil {
		return l.find(b, !f.m.cr, h, f.matches)
	}
	return findLines(b, h, func(from int) int { return from }, f.matches) // each line
}

// denseCandidates is the number of bytes of a block for each line with a needle. If a block has fewer, the next block
// is searched whole for a row of characters, not only its lines with a needle.
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
			candidates++
			start := at
			if !f.m.need.Prefix {
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

// findWords checks only lines that hold a word of a list.
func (f *finder) findWords(b []byte, h *hits) error {
	f.ends = f.m.words.find.Ends(b, f.ends[:0])
	i := 0
	next := func(from int) int {
		for ; i < len(f.ends); i++ {
			if at := int(f.ends[i]) - 1; at >= from {
				return at
			}
		}
		return len(b)
	}
	return findLines(b, h, next, func(line []byte) (bool, error) {
		if f.m.words.suffice {
			return true, nil
		}
		return f.matches(line)
	})
}

// findLines adds to h the lines of b around the positions of next that matches returns true for. next returns the first
// position at or after its argument, or len(b). It is called with the starts of lines.
func findLines(b []byte, h *hits, next func(from int) int, matches func(line []byte) (bool, error)) error {
	for pos := 0; pos < len(b); {
		at := next(pos)
		if at >= len(b) {
			break
		}
		start, end := pos+lastNewline(b[pos:at])+1, lineEnd(b, at)
		ok, err := matches(b[start:end])
		if err != nil {
			return err
		}
		if ok {
			h.add(end - 1)
		}
		pos = end
	}
	return nil
}

// matchesLine reports whether a line matches, by the automaton if possible. The line includes its newline.
func (f *finder) matchesLine(line []byte) (bool, error) {
	if f.m.words != nil {
		return f.matches(line)
	}
	if w := f.walker(); w != nil {
		states := [1]uint16{w.start}
		row, _, ok := w.walkLine(line, 0, states[:], 0)
		w.seen += len(line)
		if ok && row != rowAskRegexp<<w.shift {
			return row == rowHit<<w.shift, nil
		}
		if err := f.ctx.Err(); err != nil {
			return false, err
		}
	}
	if l := f.m.linear(); l != nil {
		if at, ascii := l.next(line, 0, !f.m.cr); ascii {
			return at < len(line), nil
		}
	}
	return f.matches(line)
}

// matches reports by regexp, or by the list of words, whether a line matches. It checks the context once per
// expensiveWork/8: callers search several lines between two checks of their own, and the machine may be busy.
func (f *finder) matches(line []byte) (bool, error) {
	text := f.m.text(line)
	if f.m.words != nil {
		_, _, ok := f.m.words.findIn(text)
		return ok, nil
	}
	cost := f.m.instructions * len(text)
	if f.work += cost; f.work > expensiveWork/8 {
		f.work = 0
		if err := f.ctx.Err(); err != nil {
			return false, err
		}
	}
	if cost <= expensiveWork {
		return f.m.re.Match(text), nil
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

// MayMatch returns false if no part of text can match. It searches for the needles only, and is many times as fast as
// [Matcher.Find] on a text without needles.
func (m *Matcher) MayMatch(text []byte) bool {
	if m.words != nil {
		i, _, _ := m.words.find.First(text, 0, nil)
		return i >= 0
	}
	// With multi, text may hold \r\n where a needle has \n.
	return m.multi || len(m.need.Needles) == 0 || literal.In(text, m.need.Needles)
}
