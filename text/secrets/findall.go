package secrets

import (
	"bytes"
	"slices"
)

// findAll returns the secrets of the text, in order and without overlaps. It updates s.block for the next text, which
// may continue a key block or a header.
func (s *scan) findAll() []finding {
	var out []finding
	s.midLine = s.block.midLine
	add := func(f finding) {
		if f = s.trimEscapes(f); f.from < f.to {
			out = append(out, f)
		}
		s.doneTo = f.to
	}
	i := 0
	var far []finding // found, but after the current position
	list := func(f finding, ok bool) {
		if ok && f.far {
			f.far = false
			at, _ := slices.BinarySearchFunc(far, f, func(a, b finding) int { return a.from - b.from })
			far = slices.Insert(far, at, f)
			return
		}
		if !ok {
			return
		}
		add(f)
		for _, next := range f.rest {
			if next.from >= s.doneTo {
				add(next)
			}
		}
		i = max(i, s.doneTo)
	}
	if hd := s.block.pendingHeader; hd.at != noHeader {
		s.block.pendingHeader = header{}
		list(s.headerValue(hd, 0))
	}
	if p := s.block.pair; p.format != nil {
		s.block.pair = pair{}
		f, ok := s.pairValue(p, 0)
		f.leadLen, f.far = f.from, true
		list(f, ok)
	}
	if sc := s.block.scalar; sc.format != nil {
		s.block.scalar = scalar{}
		f, ok := s.scalarLines(sc, 0)
		f.leadLen = f.from
		list(f, ok)
	}
	if s.block.key { // the previous text ended within a key block
		prefix := s.block.prefix
		if to := s.block.consumeKey(s.b, 0); to > 0 {
			add(finding{from: 0, to: to, format: &privateKey, block: true, more: true, prefix: prefix})
			i = to
		}
	}
	if s.block.startUnknown {
		s.block.startUnknown = false
		if f, ok := keyBefore(s.b); ok {
			add(f)
			i = f.to
		} else if f, ok := lastKeyLine(s.b); ok && f.to-f.from != pemLine && f.to-f.from != sshLine {
			add(f)
			i = f.to
		}
	}
	if s.block.lineBefore {
		s.block.lineBefore = false
		if f, ok := shortKeyLine(s.b, i); ok {
			add(f)
			i = f.to
			s.block.lineBefore = f.to-f.from == pemLine || f.to-f.from == sshLine
		}
	}
	lone, isLone := findKeyLine(s.b, i)
	at, hits := -1, []hit(nil)
	var ahead candidates
	for {
		if at < i { // else at is still ahead; searching again after each key line would take quadratic time
			at, hits = s.f.next(&ahead, s.b, i)
		}
		if len(far) > 0 && (hits == nil || far[0].from <= at) {
			f := far[0]
			if far = far[1:]; f.from >= s.doneTo {
				list(f, true)
			}
			continue
		}
		for isLone && lone.from < s.doneTo {
			lone, isLone = findKeyLine(s.b, s.doneTo)
		}
		if isLone && lone.from <= at {
			i = s.addKeyLine(lone, add)
			lone, isLone = findKeyLine(s.b, i)
			continue
		}
		if hits == nil {
			return out
		}
		i = at + 1
		list(s.match(at, hits))
	}
}

// addKeyLine adds a key line outside a block, and the key's short last line if it follows. It returns the position at
// which to continue.
func (s *scan) addKeyLine(f finding, add func(finding)) int {
	if s.block.public {
		return f.to
	}
	if s.block.lineBefore {
		f.more = true
	}
	add(f)
	s.block.lineBefore = true
	if next, ok := findKeyLine(s.b[:min(len(s.b), f.to+4096)], f.to); ok && next.to > f.to && next.from-f.to <= maxKeyGap {
		return f.to // another full line follows; the last full line handles the short line
	}
	if len(bytes.TrimLeft(s.b[f.to:], "\r\n")) == 0 { // the next line is in the next text
		return f.to
	}
	s.block.lineBefore = false
	if short, ok := shortKeyLine(s.b, f.to); ok {
		add(short)
		return short.to
	}
	return f.to
}
