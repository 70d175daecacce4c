package logs

import "encoding/binary"

// layout describes the beginning of the last parsed line with a time. A line whose beginning equals it except for
// digits has its time and level at the same offsets, so the line need not be parsed again; see [logs.acceptSimilar].
type layout struct {
	from, to, rest int // results of [stamp]; rest is 0 if there is no layout
	words          [layoutBytes / 8]layoutWord
}

const layoutBytes = 48 // lines with a longer beginning are always parsed

// layoutWord compares eight bytes of the beginning.
type layoutWord struct {
	text  uint64 // expected bytes; every digit is stored as '0'
	looks uint64 // mask: 0xff for each byte that belongs to the beginning
	// above has an addend per byte. The sum with the difference from text exceeds 0x7f if the difference is too large:
	// over 0 for a fixed byte, over 9 for a digit.
	above uint64
}

// learn stores the beginning of a line that [stamp] has parsed. A capital letter must follow the beginning: no time
// contains one there, so the beginning alone decides where the time ends.
func (l *layout) learn(line []byte, from, to, rest int) {
	if l.from == from && l.to == to && l.rest == rest && l.fits(line) {
		return
	}
	l.rest = 0
	if rest <= to || rest > layoutBytes || rest >= len(line) || line[rest] < 'A' || line[rest] > 'Z' {
		return
	}
	*l = layout{from: from, to: to, rest: rest}
	for i, c := range line[:rest] {
		w, at := &l.words[i/8], 8*(i%8)
		w.looks |= 0xff << at
		if c-'0' <= 9 {
			w.text |= '0' << at
			w.above |= 0x76 << at
		} else {
			w.text |= uint64(c) << at
			w.above |= 0x7f << at
		}
	}
}

// fits reports whether a line has this beginning.
func (l *layout) fits(line []byte) bool {
	if l.rest == 0 || len(line) < (l.rest+7)&^7 {
		return false
	}
	const high = 0x8080808080808080
	differs := uint64(0)
	for i := 0; i < l.rest; i += 8 {
		w := &l.words[i/8]
		d := (binary.LittleEndian.Uint64(line[i:]) ^ w.text) & w.looks
		differs |= d&^high + w.above | d
	}
	return differs&high == 0
}

// commonLevel recognises INFO, WARN, DEBUG and TRACE followed by a space, and returns noLevel for anything else. It
// uses a table instead of branches because the branch predictor cannot guess the next level.
func commonLevel(b []byte) level {
	if len(b) < 8 {
		return noLevel
	}
	w := binary.LittleEndian.Uint64(b)
	c := &commonLevels[w>>8%8]
	if w&c.looks != c.text {
		return noLevel
	}
	return c.level
}

// commonLevels holds each word at the index given by the low three bits of the word's second letter.
var commonLevels = func() (t [8]struct {
	text, looks uint64
	level       level
}) {
	for word, l := range map[string]level{"INFO ": info, "WARN ": warn, "DEBUG ": debug, "TRACE ": trace} {
		c := &t[word[1]%8]
		c.level = l
		for i := range len(word) {
			c.text |= uint64(word[i]) << (8 * i)
			c.looks |= 0xff << (8 * i)
		}
	}
	return t
}()
