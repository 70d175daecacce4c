package tokens

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// block is the number of bytes that are classified together, one bit of a uint64 each.
const block = 64

// startsO200k returns a bit for each byte of the first block at which an o200k_base piece begins. The text must begin
// with a piece and be valid UTF-8 of at least block bytes. The result equals repeated calls of [nextO200k], without a
// mispredicted branch per piece. The bits stop before text it cannot decide: letters without case, text whose end
// depends on later bytes, and rare cases.
func startsO200k(text []byte) (starts uint64) {
	first, second := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
	if bits.OnesCount64(first&tops|second&tops>>1) > fewWide {
		return 1
	}
	m := masksOf(text)
	if m.size < block/4 {
		return 1
	}
	after := func(x uint64) uint64 { return x << 1 } // the bytes after those in x
	signs := m.punctuation()
	blank := (m.blank | m.control) &^ m.newline // white space other than newlines
	run := signs &^ after(signs) &^ after(m.blank)
	lone := run // single punctuation characters: each is the prefix of the next word, if any
	for n, leads := range m.leads {
		lone |= run & leads << n
	}

	starts = 1 | run | blank&^after(blank) | m.newline&after(m.letter|m.digit)
	starts |= blank &^ (blank >> 1) &^ (m.newline >> 1) // the last white space character before other text
	starts |= m.letter&after(m.digit|m.newline|signs&^lone) | m.letter&^m.lower&after(m.lower)
	inner := m.digit & after(m.digit) & after(after(m.digit))
	for third := m.digit &^ after(m.digit); third != 0; third = third << 3 & inner {
		starts |= third
	}

	known := m.size - 1
	known = min(known, m.size-bits.LeadingZeros64(^(blank<<(block-m.size)))) // exclude white space at the end
	// A line with only white space belongs to the previous piece, unless that piece is punctuation.
	ended := m.newline & (m.newline + m.newline&after(signs))
	indents := blank &^ after(blank) & after(ended)
	for left := (blank + indents) &^ blank & m.newline; left != 0; left &= left - 1 {
		starts &^= 1 << (63 - bits.LeadingZeros64(indents&(left&-left-1)))
	}
	for lead := signs & after(m.newline); lead != 0; lead &= lead - 1 { // a / belongs to earlier punctuation
		if i := bits.TrailingZeros64(lead); text[i] == '/' {
			known = min(known, i)
			break
		}
	}
	if m.quotes {
		starts, known = joinContractions(text, m, starts, known)
	}
	return starts&(1<<known-1) | 1
}

// joinContractions removes the starts inside contractions, which belong to the word before them.
func joinContractions(text []byte, m masks, starts uint64, known int) (uint64, int) {
	end := 0
	for quotes := m.punctuation() & (m.letter << 1) & (m.letter >> 1); quotes != 0; quotes &= quotes - 1 {
		i := bits.TrailingZeros64(quotes)
		if text[i] != '\'' || i == end { // the letter before the quote belongs to a contraction
			continue
		}
		if i+3 >= m.size {
			return starts, min(known, i)
		}
		if n := contraction(text[i:]); n > 0 {
			end = i + n
			starts = starts&^(1<<end-1<<i) | m.letter&(1<<end)
		}
	}
	return starts, known
}

// fewWide is the maximum number of non-ASCII bytes among the first 16 bytes of a text that is processed in blocks.
const fewWide = 6

// masks classifies the first size bytes of a block: each mask has one bit per byte.
type masks struct {
	size                                          int // number of bytes classified
	letter, lower, digit, blank, control, newline uint64
	quotes                                        bool // the block contains a '
	// lead bytes of non-ASCII punctuation, indexed by the number of bytes after the lead byte
	leads [utf8.UTFMax]uint64
}

func (m *masks) punctuation() uint64 {
	return (1<<m.size - 1) &^ (m.letter | m.digit | m.blank | m.control)
}

func masksOf(text []byte) (m masks) {
	quotes, wide := uint64(tops), uint64(0)
	for at := 0; at < block; at += 8 {
		x := binary.LittleEndian.Uint64(text[at:])
		wide |= highBits(x) << at
		x &^= tops
		letter := bytesInRange(x|0x20*ones, 'a', 'z')
		m.letter |= highBits(letter) << at
		m.lower |= highBits(letter&(x<<2)) << at // the bit 0x20 of each byte
		m.digit |= highBits(bytesInRange(x, '0', '9')) << at
		m.control |= highBits(bytesInRange(x, '\t', '\r')) << at
		m.blank |= highBits(^bytesNot(x, ' ')) << at
		m.newline |= highBits(^(bytesNot(x, '\n') & bytesNot(x, '\r'))) << at
		quotes &= bytesNot(x, '\'')
	}
	m.quotes, m.size = quotes&tops != tops, block
	if wide != 0 {
		m.widen(text, wide)
	}
	return m
}

// widen classifies non-ASCII punctuation and letters with case. Any other non-ASCII character ends the block.
func (m *masks) widen(text []byte, wide uint64) {
	var small, capital uint64
	for left := wide; left != 0; {
		i := bits.TrailingZeros64(left)
		c, n := runeClass(text[i:])
		of := uint64(1<<n-1) << i
		switch {
		case i+n > block || c != 0 && c != letter|lower && c != letter|upper:
			m.size = i
			left, of = 0, 0
		case c == 0:
			m.leads[n-1] |= 1 << i
		case c == letter|lower:
			small |= of
		default:
			capital |= of
		}
		left &^= of
	}
	ascii := (1<<m.size - 1) &^ wide
	m.letter = m.letter&ascii | small | capital
	m.lower = m.lower&ascii | small
	for _, of := range []*uint64{&m.digit, &m.blank, &m.control, &m.newline} {
		*of &= ascii
	}
}

// bytesInRange sets the highest bit of each byte of x that is in a range; the other bits are undefined. All bytes of
// x and both ends of the range must be ASCII.
func bytesInRange(x uint64, from, to byte) uint64 {
	return (x + (0x80-uint64(from))*ones) &^ (x + (0x7f-uint64(to))*ones)
}

// bytesNot sets the highest bit of each byte of x that differs from c; the other bits are undefined. All bytes of x
// must be ASCII.
func bytesNot(x uint64, c byte) uint64 { return x ^ uint64(c)*ones + 0x7f*ones }

// highBits collects the highest bit of each byte of x into 8 bits.
func highBits(x uint64) uint64 { return x & tops * 0x0002040810204081 >> 56 }
