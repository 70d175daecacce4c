package secrets

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	// heldBack is how many bytes at the end of a line longer than maxLine are held back. A secret is recognised
	// within this many bytes, although a recognised secret may be longer.
	heldBack = 1 << 10
	// maxLine is the maximum length, in bytes, of an unfinished line that is held back as a whole.
	maxLine = 8 << 10
	// maxOpen is how many bytes of an unfinished secret are held back; the rest of the secret is dropped.
	maxOpen = 16 << 10
)

// Stream masks a text that arrives in chunks. Its memory is bounded by the size of a chunk. It is not safe for
// concurrent use.
type Stream struct {
	m          *Masker
	n          int
	block      block
	discarding bool // within a secret longer than maxOpen, whose rest is dropped
}

// edit replaces a part of a text by a mask, or by nothing.
type edit struct {
	from, to int
	text     []byte
}

// Stream returns a stream for a new text. The stream of a nil masker changes nothing.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// Again returns a stream for another text, by the same masker.
func (s *Stream) Again() *Stream { return s.m.Stream() }

// Middle returns a stream for a part of a text, such as a page, that may start with the end of a key.
func (m *Masker) Middle() *Stream { return &Stream{m: m, block: block{startUnknown: true}} }

// Found returns the number of secrets masked so far.
func (s *Stream) Found() int { return s.n }

// Holds reports whether a text contains a secret. It ignores and keeps the state of the stream.
func (s *Stream) Holds(text string) bool { return s.m.Holds(text) }

// Fork returns a copy of the stream; masking with the copy does not change the original's state.
func (s *Stream) Fork() Stream { return *s }

// Text masks b, a whole text such as a row or a note; it returns b itself if there is nothing to mask. If b ends
// within a key block, the next text of the stream is masked as its continuation.
func (s *Stream) Text(b []byte) []byte {
	if s.m == nil || len(b) == 0 {
		return b
	}
	if before := s.m.before; before != "" && b[0] == '"' {
		_, out := s.Next(append([]byte(before), b...), true)
		return bytes.TrimPrefix(out, []byte(before))
	}
	_, out := s.Next(b, true)
	return out
}

// SafeCut returns a position near at where b can be cut without splitting a secret; the masker would not find the
// halves of a split secret. The result is at itself or the start of the secret that crosses at. If that secret starts
// b, the result is its end.
func (s *Stream) SafeCut(b []byte, at int) (cut int) {
	if s.m == nil || at <= 0 || at >= len(b) {
		return at
	}
	defer s.m.failClosed(func() { cut = at }) // each part is masked again when it is shown
	near := max(0, at-maxOpen)
	v := newView(b[near:min(len(b), at+heldBack)])
	sc := scan{b: v.b, f: s.m.f(), block: s.block}
	for _, f := range sc.findAll() {
		from, to := near+v.at(f.from-f.leadLen), near+v.at(f.to)
		switch {
		case f.block || from >= at || to <= at: // a key block may be split: its lines are masked one by one
		case from > 0:
			return from
		default:
			return to
		}
	}
	return at
}

// Next masks as much of the start of b as it can decide, and returns the number n of input bytes and their masked
// text; the text is b[:n] itself if there is nothing to mask. The caller must pass the rest again, followed by more
// text. n is at least 1 if b has 20 KiB, and len(b) if final is true.
func (s *Stream) Next(b []byte, final bool) (n int, out []byte) {
	n, edits := s.edits(b, final)
	if len(edits) == 0 {
		return n, b[:n]
	}
	out, _ = apply(nil, b[:n], 0, edits)
	return n, out
}

// apply appends a text that begins at an offset, with the edits of offsets in it, and returns the edits that end behind
// it. The text of an edit is where its range begins.
func apply(dst, text []byte, at int, edits []edit) ([]byte, []edit) {
	end := at + len(text)
	for len(edits) > 0 && edits[0].from < end {
		e := edits[0]
		if e.from >= at {
			dst = append(append(dst, text[:e.from-at]...), e.text...)
		}
		to := min(e.to, end)
		text, at = text[to-at:], to
		if e.to > end {
			break
		}
		edits = edits[1:]
	}
	return append(dst, text...), edits
}

// edits decides as much of the start of b as it can, and returns its length and its masks.
func (s *Stream) edits(b []byte, final bool) (n int, edits []edit) {
	switch n = decidable(b, final); {
	case s.m == nil:
		return len(b), nil
	case n == 0:
		return 0, nil
	}
	return s.findUpTo(b, n, final)
}

// decidable returns the length of the start of b in which no secret can end after b.
func decidable(b []byte, final bool) int {
	if final {
		return len(b)
	}
	if nl := bytes.LastIndexByte(b, '\n') + 1; nl > 0 && len(b)-nl <= maxLine {
		if line := lineStart(b, nl-1); nl-line <= heldBack && isValueLine(b[line:]) {
			nl = line // the name of this value may be on the next line
		}
		return nl
	}
	if len(b) <= maxLine {
		return 0
	}
	at := len(b) - heldBack
	betweenWords := func(r rune) bool { return r <= ' ' || strings.ContainsRune(",;{<", r) }
	if k := bytes.LastIndexFunc(b[at-255:at+1], betweenWords); k >= 0 { // prefer a position between two words
		at += k - 255
	}
	for i := 0; i < utf8.UTFMax-1 && !utf8.RuneStart(b[at]); i++ {
		at--
	}
	_, before := escapeAround(b, at)
	return at - before
}

// findUpTo finds the masks of b up to at, or up to the start of a secret that crosses at. It fails closed: after a
// panic it returns [Unsearched] in place of the text, and treats the next text as one whose beginning is unknown.
func (s *Stream) findUpTo(b []byte, at int, final bool) (n int, edits []edit) {
	before, end := s.n, at
	defer s.m.failClosed(func() {
		out := []byte(Unsearched)
		if b[end-1] == '\n' {
			out = append(out, '\n')
		}
		n, edits = end, []edit{{0, end, out}}
		s.n, s.block, s.discarding = before+1, block{startUnknown: true}, false
	})
	start := 0
	if s.discarding {
		for start < at && !isTokenEnd(b[start]) {
			start++
		}
		if start > 0 {
			edits = append(edits, edit{0, start, nil})
		}
		if s.discarding = start == at; s.discarding {
			return at, edits
		}
	}
	whole := final || b[at-1] == '\n' // the bytes after at do not matter
	text := b[start:]
	if whole {
		text = b[start:at]
	}
	v := newView(text)
	sc := scan{b: v.b, final: whole, f: s.m.f(), block: s.block}
	all := sc.findAll()
	done := start
	for _, f := range all {
		from, to := start+v.at(f.from), start+v.at(f.to)
		lead := max(done, start+v.at(f.from-f.leadLen))
		if lead >= at {
			break
		}
		if to > at { // at splits the secret, or the secret from its name: stop before both
			if lead > 0 && to-lead <= maxOpen {
				at = lead
				break
			}
			s.discarding = to == len(b)
			at = to
		}
		edits = s.mask(edits, v, f, b[from:to], from)
		done = to
	}
	if whole || at == len(b) {
		s.block = sc.block
	} else {
		s.block.pair, s.block.scalar = pair{}, sc.block.scalar // a pair's value is in b
		if len(all) == 0 {
			s.block.lineBefore = false
		}
	}
	s.block.midLine = !final && at > 0 && b[at-1] != '\n'
	return at, edits
}

// isTokenEnd reports whether c ends any secret that is within one line.
func isTokenEnd(c byte) bool {
	return c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte("\"'<>,;\\&`"), c) >= 0
}

// mask appends the masks of one secret; raw is the secret's original text, which begins at an offset.
func (s *Stream) mask(edits []edit, v view, f finding, raw []byte, offset int) []edit {
	if !f.more {
		s.n++
	}
	switch {
	case f.block:
		return f.maskLines(edits, raw, offset)
	case f.more:
		return append(edits, edit{offset, offset + len(raw), []byte(maskedLine)})
	}
	text := appendMask(nil, f.format, v.b[f.from:f.from+f.public], utf8.RuneCount(v.b[f.from:f.to]))
	return append(edits, edit{offset, offset + len(raw), text})
}

// maskLines appends a mask of each line of a key, but for its prefix and indentation.
func (f finding) maskLines(edits []edit, raw []byte, offset int) []edit {
	text := []byte("[masked: " + f.format.Name + "]") // a key may continue: no length
	if f.more {
		text = []byte(maskedLine)
	}
	for line := range bytes.Lines(raw) {
		key := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimRight(line, "\r\n"), f.prefix), " \t")
		if at := offset + len(bytes.TrimRight(line, "\r\n")); len(key) > 0 {
			edits = append(edits, edit{at - len(key), at, text})
			text = []byte(maskedLine)
		}
		offset += len(line)
	}
	return edits
}

// String masks the secrets of a whole text and returns their number; without secrets it returns s itself. Existing
// masks are not masked again.
//
// The number of lines does not change, and valid JSON stays valid.
func (m *Masker) String(s string) (string, int) {
	if m == nil || len(s) < shortest {
		return s, 0
	}
	st := Stream{m: m}
	out := st.Text([]byte(s))
	if st.n == 0 {
		return s, 0
	}
	return string(out), st.n
}

// Holds reports whether s contains a secret.
func (m *Masker) Holds(s string) bool {
	_, n := m.String(s)
	return n > 0
}
