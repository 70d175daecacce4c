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
	text  uint64 // a digit is 0
	looks uint64 // 0xff where a byte is of the beginning
	above uint64 // what goes over 0x7f when it is added to how a byte differs too much: by anything, or a digit by over 9
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

// fits says that a line begins so.
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

// commonLevel tells of the commonest words for a level below an error, in capitals with a blank behind; noLevel is any other. It does so by
// a table, as which of them comes next is nothing a processor can foretell.
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

// commonLevels has each word at the lower three bits of its second letter.
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
