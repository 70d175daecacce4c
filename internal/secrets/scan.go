package secrets

import "bytes"

// scan is one pass over a text that is at hand.
type scan struct {
	b     []byte
	lo    int  // nothing before it is looked at any more: a secret found ends there
	final bool // nothing follows b
	f     *filter
	block block
	ahead *ahead

	words, values, cookies stretch // of urlSafe, credentialSet and cookieSet
	unnamed                stretch // the last name that was looked at and has no secret behind it
}

// all finds the secrets of the text, in their order; none overlaps another. A block that goes on beyond the text's end is
// in s.block afterwards.
func (s *scan) all() []found {
	var out []found
	take := func(f found) {
		if f = s.whole(f); f.from < f.to {
			out = append(out, f)
		}
		s.lo = f.to
	}
	i := 0
	list := func(f found, ok bool) {
		for ; ok; f, ok = s.more(f) {
			take(f)
			i = max(i, s.lo)
		}
	}
	if hd := s.block.until; hd.at != noHeader {
		s.block.until = header{}
		list(s.headerValue(hd, 0))
	}
	if s.block.key { // of the text before
		prefix := s.block.prefix
		if to := s.block.take(s.b, 0); to > 0 {
			take(found{from: 0, to: to, format: &privateKey, block: true, more: true, prefix: prefix})
			i = to
		}
	}
	if s.block.middle {
		s.block.middle = false
		if f, ok := last(s.b); ok && f.to-f.from != pemLine && f.to-f.from != sshLine {
			take(f)
			i = f.to
		}
	}
	if s.block.lone {
		s.block.lone = false
		if f, ok := after(s.b, i); ok {
			take(f)
			i = f.to
			s.block.lone = f.to-f.from == pemLine || f.to-f.from == sshLine
		}
	}
	lone, isLone := loneKey(s.b, i, &s.block)
	at, hits := -1, []hit(nil)
	s.ahead = aheadOf(s.b)
	for {
		if at < i { // else it is still the next one: a text full of lone lines may have none to its end
			at, hits = s.f.next(s.ahead, s.b, i)
		}
		for isLone && lone.from < s.lo {
			lone, isLone = loneKey(s.b, s.lo, &s.block)
		}
		if isLone && lone.from <= at {
			i = s.takeLone(lone, take)
			lone, isLone = loneKey(s.b, i, &s.block)
			continue
		}
		if hits == nil {
			return out
		}
		i = at + 1
		list(s.match(at, hits))
	}
}

// takeLone takes a line of a key that stands by itself, and the short one behind it; it gives where to go on.
func (s *scan) takeLone(f found, take func(found)) int {
	if s.block.public {
		return f.to
	}
	if s.block.lone {
		f.more = true
	}
	take(f)
	s.block.lone = true
	if next, ok := loneKey(s.b[:min(len(s.b), f.to+4096)], f.to, &s.block); ok && next.to > f.to {
		return f.to // more of them: the last one looks behind itself
	}
	if len(bytes.TrimLeft(s.b[f.to:], "\r\n")) == 0 { // what follows it is in the next text
		return f.to
	}
	s.block.lone = false
	if short, ok := after(s.b, f.to); ok {
		take(short)
		return short.to
	}
	return f.to
}

// match asks the matchers of what may stand at a window, longest keyword first where several do.
func (s *scan) match(at int, hits []hit) (found, bool) {
	best := found{}
	ok := false
	for k := range hits {
		h := &hits[k]
		from, stands := h.stands(s.b, at)
		if !stands || from < s.lo {
			continue
		}
		f, is := h.format.match(s, h, from)
		if is && f.from >= s.lo && f.to > f.from && (!ok || f.to-f.from > best.to-best.from) {
			f.lead = max(0, f.from-s.begins(from))
			best, ok = f, true
		}
	}
	return best, ok
}

// begins is where the word begins in which a keyword stands at from, with the quote and the backslashes before it.
func (s *scan) begins(from int) int {
	from -= nameSet.back(s.b[s.lo:from], maxName)
	if from > s.lo && (s.b[from-1] == '"' || s.b[from-1] == '\'') {
		from--
	}
	return from - slash.back(s.b[s.lo:from], maxSlashes)
}

// specific is the format, told by its shape, of what begins at i, with the length of its public beginning; nil for none.
func (s *scan) specific(i int) (*Format, int) {
	hits := s.f.at(s.b, i)
	for k := range hits {
		h := &hits[k]
		if h.format.shape == nil || h.offset != 0 || h.format.Before != "" {
			continue
		}
		if from, stands := h.stands(s.b, i); stands {
			if f, ok := h.format.match(s, h, from); ok && f.from == i {
				return h.format, f.public
			}
		}
	}
	return nil, 0
}
