package tokens

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// block is how many bytes are looked at together: a bit of a number each.
const block = 64

// startsO200k is where pieces of o200k_base begin among the first bytes of a text that begins with one: a bit for each byte. It is [nextO200k]
// again and again, but without a branch at each piece, which no processor can foresee. Of what it does not know it is silent: letters
// without case, what more text decides, and what is rare. The text is valid UTF-8 of at least block bytes.
func startsO200k(text []byte) (starts uint64) {
	first, second := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
	if bits.OnesCount64(first&tops|second&tops>>1) > fewWide {
		return 1
	}
	m := masksOf(text)
	if m.size < block/4 {
		return 1
	}
	after := func(x uint64) uint64 { return x << 1 } // the bytes after those
	signs := m.signs()
	blank := (m.blank | m.control) &^ m.newline // white space that ends no line
	run := signs &^ after(signs) &^ after(m.blank)
	lone := run // a sign by itself: the next word's, if there is one
	for n, leads := range m.leads {
		lone |= run & leads << n
	}

	starts = 1 | run | blank&^after(blank) | m.newline&after(m.letter|m.digit)
	starts |= blank &^ (blank >> 1) &^ (m.newline >> 1) // the last one before what is none
	starts |= m.letter&after(m.digit|m.newline|signs&^lone) | m.letter&^m.lower&after(m.lower)
	inner := m.digit & after(m.digit) & after(after(m.digit))
	for third := m.digit &^ after(m.digit); third != 0; third = third << 3 & inner {
		starts |= third
	}

	known := m.size - 1
	known = min(known, m.size-bits.LeadingZeros64(^(blank<<(block-m.size)))) // white space that may go on
	// Lines of nothing else belong to those before, if these do not belong to signs.
	ended := m.newline & (m.newline + m.newline&after(signs))
	indents := blank &^ after(blank) & after(ended)
	for left := (blank + indents) &^ blank & m.newline; left != 0; left &= left - 1 {
		starts &^= 1 << (63 - bits.LeadingZeros64(indents&(left&-left-1)))
	}
	for lead := signs & after(m.newline); lead != 0; lead &= lead - 1 { // it belongs to signs before the line
		if i := bits.TrailingZeros64(lead); text[i] == '/' {
			known = min(known, i)
			break
		}
	}
	if m.quotes {
		starts, known = contracted(text, m, starts, known)
	}
	return starts&(1<<known-1) | 1
}

// contracted takes the contractions into the words they end.
func contracted(text []byte, m masks, starts uint64, known int) (uint64, int) {
	end := 0
	for quotes := m.signs() & (m.letter << 1) & (m.letter >> 1); quotes != 0; quotes &= quotes - 1 {
		i := bits.TrailingZeros64(quotes)
		if text[i] != '\'' || i == end { // the letter before it is of a contraction itself
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

// fewWide is how many of a text's first 16 bytes may be none of ASCII, where it is looked at in blocks.
const fewWide = 6

// masks are the classes of a block's first bytes, a bit for each.
type masks struct {
	size                                          int // how many
	letter, lower, digit, blank, control, newline uint64
	quotes                                        bool                // there is a '
	leads                                         [utf8.UTFMax]uint64 // the first bytes of signs that are not ASCII, by how many follow
}

func (m *masks) signs() uint64 {
	return (1<<m.size - 1) &^ (m.letter | m.digit | m.blank | m.control)
}

func masksOf(text []byte) (m masks) {
	quotes, wide := uint64(tops), uint64(0)
	for at := 0; at < block; at += 8 {
		x := binary.LittleEndian.Uint64(text[at:])
		wide |= gather(x) << at
		x &^= tops
		letter := among(x|0x20*ones, 'a', 'z')
		m.letter |= gather(letter) << at
		m.lower |= gather(letter&(x<<2)) << at // 0x20 of each byte
		m.digit |= gather(among(x, '0', '9')) << at
		m.control |= gather(among(x, '\t', '\r')) << at
		m.blank |= gather(^other(x, ' ')) << at
		m.newline |= gather(^(other(x, '\n') & other(x, '\r'))) << at
		quotes &= other(x, '\'')
	}
	m.quotes, m.size = quotes&tops != tops, block
	if wide != 0 {
		m.widen(text, wide)
	}
	return m
}

// widen classes what is not ASCII: signs, and letters that have a case. Others end the block.
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

// among has the highest bit set of each byte of x from one to another; the other bits are anything. All are ASCII.
func among(x uint64, from, to byte) uint64 {
	return (x + (0x80-uint64(from))*ones) &^ (x + (0x7f-uint64(to))*ones)
}

// other has the highest bit set of each byte of x that is not c. All are ASCII.
func other(x uint64, c byte) uint64 { return x ^ uint64(c)*ones + 0x7f*ones }

// gather is the highest bits of the bytes of x, together.
func gather(x uint64) uint64 { return x & tops * 0x0002040810204081 >> 56 }
