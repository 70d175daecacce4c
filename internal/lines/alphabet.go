package lines

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// alphabet says what a program can tell apart: bytes, and the runes that they make. An ASCII byte is a letter by
// itself; the bytes of a longer rune lead through a trie, which ends in the letter of that rune.
type alphabet struct {
	class [256]uint8 // bytes of a class are alike to every state
	bytes []byte     // one byte of each class
	shift uint       // 1<<shift classes at most

	lead    [256]int16 // node to which a byte leads at the start of a rune; noNode: none starts with it
	nodes   []trieNode // …
	letters []rune     // one rune of each letter above ASCII
	crlf    bool       // \r\n is a line end, so that \r is a class of its own

	sets  []*syntax.Inst     // while it is made: one instruction for each set of runes
	spans []runeSpan         // while it is made: the letters above ASCII, in order and without a gap
	made  map[trieNode]int16 // while it is made
	alike map[likeNode]int16 // while it is made: nodes below which all is one letter
}

// likeNode is a node below which n bytes more lead to one letter.
type likeNode struct {
	n      int
	letter int16
}

// trieNode leads by the low six bits of a continuation byte: to a node, or in the last byte of a rune to its letter.
type trieNode struct {
	last bool
	to   [64]int16
}

const noNode = -1

// runeSpan is where one letter's runes go on to.
type runeSpan struct {
	last   rune
	letter int16
}

// Bounds of what an alphabet may cost: a few milliseconds, and 100 KB.
const (
	maxSpanWork  = 1 << 19 // spans × sets
	maxTrieNodes = 512
)

// newAlphabet returns nil where the program's sets are too many.
func newAlphabet(p *syntax.Prog, crlf bool) *alphabet {
	a := &alphabet{crlf: crlf, made: map[trieNode]int16{}, alike: map[likeNode]int16{}}
	if !a.collect(p) || !a.makeSpans() || !a.makeTrie() {
		return nil
	}
	a.makeClasses()
	a.sets, a.spans, a.made, a.alike = nil, nil, nil, nil
	return a
}

// collect gathers the different sets of the program. It returns false where one is a single surrogate: regexp reads that as U+FFFD in some
// places of a pattern and not in others.
func (a *alphabet) collect(p *syntax.Prog) bool {
	seen := map[string]bool{}
	for i := range p.Inst {
		in := &p.Inst[i]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		default:
			continue
		}
		if len(in.Rune) == 1 && utf16.IsSurrogate(in.Rune[0]) {
			return false
		}
		key := []byte{byte(in.Op), byte(in.Arg)}
		for _, r := range in.Rune {
			key = binary.AppendVarint(key, int64(r))
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			a.sets = append(a.sets, in)
		}
	}
	return true
}

// makeSpans cuts the runes above ASCII where any set begins or ends, and names those alike by one letter.
func (a *alphabet) makeSpans() bool {
	cuts := []rune{utf8.RuneSelf}
	cut := func(lo, hi rune) { cuts = append(cuts, lo, hi+1) }
	for _, s := range a.sets {
		rs := s.Rune
		if len(rs) == 1 {
			cut(rs[0], rs[0])
			for r := unicode.SimpleFold(rs[0]); r != rs[0]; r = unicode.SimpleFold(r) {
				cut(r, r)
			}
		}
		for i := 0; i+1 < len(rs); i += 2 {
			cut(rs[i], rs[i+1])
		}
		if len(cuts)*len(a.sets) > maxSpanWork {
			return false
		}
	}
	cuts = append(cuts, unicode.MaxRune+1)
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	letters := map[string]int16{}
	var k []byte
	for i, lo := range cuts {
		if lo < utf8.RuneSelf || lo > unicode.MaxRune {
			continue
		}
		k = a.signature(k[:0], lo)
		letter, ok := letters[string(k)]
		if !ok {
			letter = int16(len(a.letters))
			letters[string(k)] = letter
			a.letters = append(a.letters, lo)
		}
		if n := len(a.spans); n > 0 && a.spans[n-1].letter == letter {
			a.spans[n-1].last = cuts[i+1] - 1
		} else {
			a.spans = append(a.spans, runeSpan{cuts[i+1] - 1, letter})
		}
	}
	return len(a.letters) < 1<<12
}

// signature appends which sets hold a rune.
func (a *alphabet) signature(b []byte, r rune) []byte {
	for i, s := range a.sets {
		if i%8 == 0 {
			b = append(b, 0)
		}
		if matchRune(s, r) {
			b[len(b)-1] |= 1 << (i % 8)
		}
	}
	return b
}

// makeTrie makes the nodes that tell the letters apart, as UTF-8 is defined: the shortest form, no surrogates.
func (a *alphabet) makeTrie() bool {
	for i := range a.lead {
		a.lead[i] = noNode
	}
	for b := 0xC2; b <= 0xF4; b++ {
		switch {
		case b < 0xE0:
			a.lead[b] = a.node(1, rune(b&0x1F)<<6)
		case b < 0xF0:
			a.lead[b] = a.node(2, rune(b&0x0F)<<12)
		default:
			a.lead[b] = a.node(3, rune(b&0x07)<<18)
		}
		if len(a.nodes) > maxTrieNodes {
			return false
		}
	}
	return true
}

// node is the one for the runes from lo on that n more bytes tell apart. Most lead to one letter: that of all that the pattern does not
// speak of.
func (a *alphabet) node(n int, lo rune) int16 {
	last := lo + 1<<(6*n) - 1
	span := a.spanOf(lo)
	if last > a.spans[span].last || !inUTF8(n, lo) || !inUTF8(n, last) {
		return a.mixed(n, lo)
	}
	like := likeNode{n, a.spans[span].letter}
	id, ok := a.alike[like]
	if !ok {
		id = a.mixed(n, lo)
		a.alike[like] = id
	}
	return id
}

// mixed is node, looking at each byte.
func (a *alphabet) mixed(n int, lo rune) int16 {
	if len(a.nodes) > maxTrieNodes {
		return noNode
	}
	t := trieNode{last: n == 1}
	step := rune(1) << (6 * (n - 1))
	for i := range t.to {
		r := lo + rune(i)*step
		switch {
		case !inUTF8(n, r):
			t.to[i] = noNode
		case n == 1:
			t.to[i] = a.letter(r)
		case i > 0 && inUTF8(n, r-step) && a.spanOf(r-step) == a.spanOf(r+step-1):
			t.to[i] = t.to[i-1] // one letter throughout
		default:
			t.to[i] = a.node(n-1, r)
		}
	}
	id, ok := a.made[t]
	if !ok {
		id = int16(len(a.nodes))
		a.made[t] = id
		a.nodes = append(a.nodes, t)
	}
	return id
}

// inUTF8 says whether runes from r on may stand where n bytes are still to come, r's own being the next.
func inUTF8(n int, r rune) bool {
	switch n {
	case 2:
		return r >= 0x800 && (r < 0xD800 || r > 0xDFFF)
	case 3:
		return r >= 0x10000 && r <= unicode.MaxRune
	}
	return true
}

func (a *alphabet) spanOf(r rune) int {
	i, _ := slices.BinarySearchFunc(a.spans, r, func(s runeSpan, r rune) int { return int(s.last - r) })
	return i
}

func (a *alphabet) letter(r rune) int16 { return a.spans[a.spanOf(r)].letter }

// makeClasses joins the bytes that no state can tell apart.
func (a *alphabet) makeClasses() {
	known := map[string]uint8{}
	var k, last []byte
	for b := range 256 {
		k, last = a.byteSignature(last[:0], byte(b)), k
		if b > 0 && bytes.Equal(k, last) { // as most
			a.class[b] = a.class[b-1]
			continue
		}
		c, ok := known[string(k)]
		if !ok {
			c = uint8(len(known)) // 256 bytes
			known[string(k)] = c
			a.bytes = append(a.bytes, byte(b))
		}
		a.class[b] = c
	}
	for 1<<a.shift < len(known) {
		a.shift++
	}
}

// byteSignature appends what is the same for bytes that no state can tell apart.
func (a *alphabet) byteSignature(k []byte, b byte) []byte {
	switch {
	case b == '\n', b == '\r' && a.crlf:
		return append(k, b)
	case b < utf8.RuneSelf && isWord(b):
		return a.signature(append(k, "aw"...), rune(b))
	case b < utf8.RuneSelf:
		return a.signature(append(k, "a-"...), rune(b))
	case b < 0xC0:
		k = append(k, 'c')
		for i := range a.nodes {
			to := a.nodes[i].to[b&0x3F]
			k = append(k, byte(to), byte(to>>8))
		}
		return k
	}
	return append(k, 'l', byte(a.lead[b]), byte(a.lead[b]>>8))
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// matchRune says whether an instruction takes a rune. [syntax.Inst.MatchRune] does not look at the kind of instruction.
func matchRune(in *syntax.Inst, r rune) bool {
	switch in.Op {
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	}
	return in.MatchRune(r)
}
