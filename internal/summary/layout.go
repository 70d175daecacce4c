package summary

import "encoding/binary"

// layout is how the last stamped line began: a line that begins alike, but for the digits, has its time and its level at the same places.
// So it is not parsed again, where nothing else can be told of it: see [logs.alike].
type layout struct {
	from, to, rest int // as [stamp] told; rest is 0 where there is none
	words          [layoutBytes / 8]layoutWord
}

const layoutBytes = 48 // a longer beginning is parsed each time

// layoutWord is eight bytes of it.
type layoutWord struct {
	text   uint64 // the bytes that are no digits …
	fixed  uint64 // … and where they stand
	digits uint64 // where digits stand
}

// learn takes the beginning of a line, which [stamp] has told of. A letter has to follow, which belongs to no time: then all that was
// looked at for the time stands before it, or is decided by it.
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
		if c-'0' <= 9 {
			w.digits |= 0xff << at
		} else {
			w.fixed |= 0xff << at
			w.text |= uint64(c) << at
		}
	}
}

// fits says that a line begins so.
func (l *layout) fits(line []byte) bool {
	if l.rest == 0 || len(line) < (l.rest+7)&^7 {
		return false
	}
	const zeros, high, six = 0x3030303030303030, 0xf0f0f0f0f0f0f0f0, 0x0606060606060606
	for i := 0; i < l.rest; i += 8 {
		w, b := &l.words[i/8], binary.LittleEndian.Uint64(line[i:])
		d := b&w.digits | zeros&^w.digits
		if b&w.fixed != w.text || d&high != zeros || (d+six)&high != zeros {
			return false
		}
	}
	return true
}

// commonLevel tells of the commonest words for a level below an error, in capitals with a blank behind; noLevel is any other.
func commonLevel(b []byte) level {
	if len(b) < 6 {
		return noLevel
	}
	const (
		info4 = 'I' | 'N'<<8 | 'F'<<16 | 'O'<<24
		warn4 = 'W' | 'A'<<8 | 'R'<<16 | 'N'<<24
		debu4 = 'D' | 'E'<<8 | 'B'<<16 | 'U'<<24
		trac4 = 'T' | 'R'<<8 | 'A'<<16 | 'C'<<24
	)
	switch w := binary.LittleEndian.Uint32(b); {
	case w == info4 && b[4] == ' ':
		return info
	case w == warn4 && b[4] == ' ':
		return warn
	case w == debu4 && b[4] == 'G' && b[5] == ' ':
		return debug
	case w == trac4 && b[4] == 'E' && b[5] == ' ':
		return trace
	}
	return noLevel
}
