package secrets

import (
	"bytes"
	"unicode/utf8"
)

const (
	// reach is how much of a line without end is held back: what tells a secret stands within so many bytes, and what has
	// been told goes on as far as it goes.
	reach = 1 << 10
	// maxLine is how much of a line is waited for before it is taken as one without end.
	maxLine = 8 << 10
	// maxOpen is how much of a secret whose end has not come is held back; what follows of it is left out.
	maxOpen = 16 << 10
)

// Stream masks a text that comes piece by piece, in memory bounded by what it is handed. It is not safe for concurrent use.
type Stream struct {
	m     *Masker
	n     int
	block block
	eats  bool // within a secret longer than maxOpen: what belongs to it is left out
}

// Stream begins a text. That of a nil masker hands everything on.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// Middle begins a text of which nobody knows what stands before it, as a page: it may begin with the end of a key.
func (m *Masker) Middle() *Stream { return &Stream{m: m, block: block{middle: true}} }

// Found is how many secrets were masked so far.
func (s *Stream) Found() int { return s.n }

// Holds says whether there is a secret in a text by itself.
func (s *Stream) Holds(text string) bool { return s.m.Holds(text) }

// Fork is a stream in the same state, to try something out.
func (s *Stream) Fork() Stream { return *s }

// Text takes b as a whole text, such as a row or a note, and gives it masked: b itself where there is nothing to mask. A
// key block that goes on in the next text stays known.
func (s *Stream) Text(b []byte) []byte {
	if s.m == nil || len(b) == 0 {
		return b
	}
	_, out := s.pass(b, len(b), true)
	return out
}

// Uncut is the last place at or before at to cut b that is not within a secret, which a cut would hide from the masker.
// Where a secret stands at b's beginning it is the end of that.
func (s *Stream) Uncut(b []byte, at int) (cut int) {
	if s.m == nil || at <= 0 || at >= len(b) {
		return at
	}
	defer func() {
		if p := recover(); p != nil {
			s.m.tell(p)
			cut = at // what is shown of either half is masked by itself, or not shown
		}
	}()
	near := max(0, at-maxOpen)
	v := unescaped(b[near:min(len(b), at+reach)])
	sc := scan{b: v.b, f: s.m.f(), block: s.block}
	for _, f := range sc.all() {
		from, to := near+v.at(f.from-f.lead), near+v.at(f.to)
		switch {
		case f.block || from >= at || to <= at: // of a key each line is masked by itself
		case from > 0:
			return from
		default:
			return to
		}
	}
	return at
}

// Next takes as much of b, n bytes, as can be told for certain, and gives it masked: b[:n] itself where there is nothing
// to mask. What is left comes again, with more behind it. At least one byte of 20 KiB is taken, and all where final.
func (s *Stream) Next(b []byte, final bool) (n int, out []byte) {
	if s.m == nil {
		return len(b), b
	}
	if final {
		return s.pass(b, len(b), true)
	}
	if nl := bytes.LastIndexByte(b, '\n') + 1; nl > 0 && len(b)-nl <= maxLine {
		return s.pass(b, nl, false)
	}
	if len(b) <= maxLine {
		return 0, nil
	}
	at := len(b) - reach
	for back := 0; back < 256; back++ { // rather between two words
		if c := b[at-back]; c <= ' ' || c == ',' || c == ';' || c == '{' || c == '<' {
			at -= back
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && !utf8.RuneStart(b[at]); i++ {
		at--
	}
	_, before := escaped(b, at)
	at -= before
	return s.pass(b, at, false)
}

// pass is find, closed where that fails: a text that cannot be masked is not shown, and what follows it is taken as
// one whose beginning nobody knows.
func (s *Stream) pass(b []byte, at int, final bool) (n int, out []byte) {
	found := s.n
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		s.m.tell(p)
		n, out = at, []byte(Unsearched)
		if b[at-1] == '\n' {
			out = append(out, '\n')
		}
		s.n, s.block, s.eats = found+1, block{middle: true}, false
	}()
	return s.find(b, at, final)
}

// find masks b up to at, or up to where a secret begins that reaches over it.
func (s *Stream) find(b []byte, at int, final bool) (int, []byte) {
	start := 0
	if s.eats {
		for start < at && !endsToken(b[start]) {
			start++
		}
		if s.eats = start == at; s.eats {
			return at, b[:0]
		}
	}
	whole := final || b[at-1] == '\n' // what stands behind at does not matter
	text := b[start:]
	if whole {
		text = b[start:at]
	}
	v := unescaped(text)
	sc := scan{b: v.b, final: whole, f: s.m.f(), block: s.block}
	all := sc.all()
	var dst []byte
	done := start
	for _, f := range all {
		from, to := start+v.at(f.from), start+v.at(f.to)
		tells := max(done, start+v.at(f.from-f.lead))
		if tells >= at {
			break
		}
		if to > at { // it reaches over, or what tells of it is before the cut: what is before that is certain
			if tells > 0 && to-tells <= maxOpen {
				at = tells
				break
			}
			s.eats = to == len(b)
			at = to
		}
		dst = append(dst, b[done:from]...)
		dst = s.mask(dst, v, f, b[from:to])
		done = to
	}
	if whole || at == len(b) {
		s.block = sc.block
	} else if len(all) == 0 {
		s.block.lone = false
	}
	if dst == nil && done == start && start == 0 {
		return at, b[:at]
	}
	return at, append(dst, b[done:at]...)
}

// endsToken says that no secret of one piece goes on behind c.
func endsToken(c byte) bool {
	return c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte("\"'<>,;\\&`"), c) >= 0
}

// mask appends what stands for one secret, whose text as it was written is raw.
func (s *Stream) mask(dst []byte, v view, f found, raw []byte) []byte {
	if !f.more {
		s.n++
	}
	if !f.block {
		if f.more {
			return append(dst, again...)
		}
		public := v.b[f.from : f.from+f.public]
		return appendMask(dst, f.format, public, utf8.RuneCount(v.b[f.from:f.to]))
	}
	told := f.more
	for line := range bytes.Lines(raw) {
		text := bytes.TrimRight(line, "\r\n")
		end := line[len(text):]
		if bytes.HasPrefix(text, f.prefix) {
			dst = append(dst, f.prefix...)
			text = text[len(f.prefix):]
		}
		trimmed := bytes.TrimLeft(text, " \t")
		dst = append(dst, text[:len(text)-len(trimmed)]...)
		switch {
		case len(trimmed) == 0:
		case told:
			dst = append(dst, again...)
		default:
			dst = append(append(append(dst, "[masked: "...), f.format.Name...), ']') // how long it is may not be known yet
			told = true
		}
		dst = append(dst, end...)
	}
	return dst
}
