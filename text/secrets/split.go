package secrets

// maxSplit is the maximum number of bytes that [Split.Next] holds back if one stream has an unfinished line while the
// other continues.
const maxSplit = 32 << 10

// Split masks a text in which two streams alternate, such as standard output and standard error, each stream by
// itself: a secret of one is found although the other wrote in its middle. It is not safe for concurrent use.
type Split struct {
	streams [2]splitStream
	parts   []streamPart // of the text that Next has not returned, in order
	joined  bool
}

// streamPart is a number of bytes of one stream.
type streamPart struct {
	which int
	size  int
}

// splitStream is one of the streams. Offsets count its bytes from the first one that was not returned.
type splitStream struct {
	*Stream
	decided int    // bytes whose masks are known
	edits   []edit // masks within them
}

// Split returns a masker of a new text. Until [Split.Add] is called, all of the text is one stream. A nil masker masks
// nothing.
func (m *Masker) Split() *Split {
	return &Split{streams: [2]splitStream{{Stream: m.Stream()}, {Stream: m.Stream()}}}
}

// Add assigns the next n bytes of the text to a stream. It must be called before Next gets them.
func (s *Split) Add(n int, second bool) {
	which := 0
	if second {
		which = 1
	}
	switch last := len(s.parts) - 1; {
	case n == 0 || s.joined:
	case last >= 0 && s.parts[last].which == which:
		s.parts[last].size += n
	default:
		s.parts = append(s.parts, streamPart{which, n})
	}
}

// Join makes all of the text one stream. It must be called before Next.
func (s *Split) Join() { s.joined, s.parts = true, nil }

// Again returns a stream for another text, by the same masker.
func (s *Split) Again() *Stream { return s.streams[0].Again() }

// Found returns the number of secrets masked so far.
func (s *Split) Found() int { return s.streams[0].n + s.streams[1].n }

// Next is [Stream.Next] for both streams. If one of them holds back a text while the other writes over 32 KiB, the text
// is masked as if its stream ended there.
func (s *Split) Next(b []byte, final bool) (n int, out []byte) {
	if len(s.parts) == 0 {
		return s.streams[0].Next(b, final)
	}
	if p := s.parts[0]; p.size >= len(b) && s.streams[p.which].decided == 0 {
		n, out = s.streams[p.which].Next(b, final)
		s.drop(n)
		return n, out
	}
	texts := s.texts(b)
	for k := range s.streams {
		s.streams[k].decide(texts[k], final)
	}
	n, blocked := s.decided(len(b))
	for len(b)-n > maxSplit {
		s.streams[blocked].decide(texts[blocked], true)
		n, blocked = s.decided(len(b))
	}
	return n, s.take(b[:n])
}

// texts returns the bytes of each stream in b.
func (s *Split) texts(b []byte) (texts [2][]byte) {
	for _, p := range s.parts {
		size := min(p.size, len(b))
		texts[p.which] = append(texts[p.which], b[:size]...)
		b = b[size:]
	}
	return texts
}

// decide finds the masks of as much as possible of a stream's text. If final is true, that is all of it.
func (s *splitStream) decide(text []byte, final bool) {
	n, edits := s.Stream.edits(text[s.decided:], final)
	for _, e := range edits {
		s.edits = append(s.edits, edit{e.from + s.decided, e.to + s.decided, e.text})
	}
	s.decided += n
}

// decided returns how many of the next bytes can be returned, at most size, and the stream that holds back the byte
// after them.
func (s *Split) decided(size int) (n, blocked int) {
	var at [2]int
	for _, p := range s.parts {
		k := p.which
		room := min(p.size, size-n)
		if known := s.streams[k].decided - at[k]; known < room {
			return n + max(known, 0), k
		}
		at[k] += room
		n += room
	}
	return n, 0
}

// take returns the masked text of b, all of which is decided: b itself if there is nothing to mask.
func (s *Split) take(b []byte) []byte {
	var at [2]int
	var out []byte
	rest, masked := b, false
	for _, p := range s.parts {
		size := min(p.size, len(rest))
		if size == 0 {
			break
		}
		st := &s.streams[p.which]
		from := at[p.which]
		masked = masked || len(st.edits) > 0 && st.edits[0].from < from+size
		out, st.edits = apply(out, rest[:size], from, st.edits)
		at[p.which], rest = from+size, rest[size:]
	}
	s.drop(len(b))
	for k := range s.streams {
		s.streams[k].shift(at[k])
	}
	if !masked {
		return b
	}
	return out
}

// shift makes offsets count from the byte at n.
func (s *splitStream) shift(n int) {
	s.decided -= n
	for i := range s.edits {
		s.edits[i].from -= n
		s.edits[i].to -= n
	}
}

// drop forgets the first n bytes of the parts.
func (s *Split) drop(n int) {
	for n > 0 {
		size := min(n, s.parts[0].size)
		s.parts[0].size -= size
		if n -= size; s.parts[0].size == 0 {
			s.parts = s.parts[1:]
		}
	}
}
