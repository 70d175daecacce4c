package linesearch

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// alphabet groups the bytes and runes that a program cannot distinguish: a class is a set of equivalent bytes, a letter
// is a set of equivalent runes above ASCII. The bytes of a multi-byte rune lead through a trie to its letter.
type alphabet struct {
	class   [256]uint8 // the class of each byte
	columns int        // number of classes
	bytes   bool       // the characters of the program are bytes, so a text has no runes of several bytes

	lead    [256]int16 // by first byte of a rune: the next node; noNode if no rune starts with the byte
	nodes   []trieNode // nodes of the trie
	letters []rune     // one rune of each letter above ASCII
	crlf    bool       // \r\n is a line end: \r is then a class of its own

	// The following fields are used during construction only.
	sets         []*syntax.Inst // one instruction for each distinct set of runes
	spans        []runeSpan     // the runes above ASCII, in order and without gaps
	nodeIDs      map[trieNode]int16
	uniformNodes map[uniformNode]int16 // nodes from which all bytes lead to the same letter
}

// uniformNode is the key of a node from which all sequences of n more bytes lead to the same letter.
type uniformNode struct {
	n      int
	letter int16
}

// trieNode maps the low six bits of a continuation byte to the next node or, if last is set, to the letter of the rune.
type trieNode struct {
	last bool
	to   [64]int16
}

const noNode = -1 // no rune continues with this byte

// runeSpan is a range of runes that have the same letter. It starts after the last rune of the previous span.
type runeSpan struct {
	last   rune
	letter int16
}

// These limits bound an alphabet to a few milliseconds and 100 KB.
const (
	maxSpanWork  = 1 << 19 // spans × sets
	maxTrieNodes = 512
)

// newAlphabet returns nil if the program exceeds one of these limits, or if collectSets returns false.
func newAlphabet(p *syntax.Prog, crlf, bytes bool) *alphabet {
	a := &alphabet{crlf: crlf, bytes: bytes, nodeIDs: map[trieNode]int16{}, uniformNodes: map[uniformNode]int16{}}
	if !a.collectSets(p) || !bytes && !(a.makeSpans() && a.makeTrie()) {
		return nil
	}
	a.makeClasses()
	a.sets, a.spans, a.nodeIDs, a.uniformNodes = nil, nil, nil, nil
	return a
}

// collectSets lists the distinct sets of runes in the program. It returns false if a set is a single surrogate, because
// regexp reads a surrogate as U+FFFD in some parts of a pattern but not in others.
func (a *alphabet) collectSets(p *syntax.Prog) bool {
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
		same := func(s *syntax.Inst) bool { return s.Op == in.Op && s.Arg == in.Arg && slices.Equal(s.Rune, in.Rune) }
		if !slices.ContainsFunc(a.sets, same) {
			a.sets = append(a.sets, in)
		}
	}
	return true
}

// makeSpans splits the runes above ASCII where a set starts or ends. Spans in the same sets share a letter. makeSpans
// returns false if there are too many spans or letters.
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

// signature appends a bitmap of the sets that contain a rune.
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

// makeTrie makes the nodes that map valid UTF-8 (shortest form, no surrogates) to letters. It returns false if there
// are too many nodes.
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

// node returns the node from which n more bytes select a rune; lo is the first of these runes. Most nodes lead to one
// letter only, which is that of the runes the pattern does not name.
func (a *alphabet) node(n int, lo rune) int16 {
	last := lo + 1<<(6*n) - 1
	span := a.spanOf(lo)
	if last > a.spans[span].last || !inUTF8(n, lo) || !inUTF8(n, last) {
		return a.newNode(n, lo)
	}
	like := uniformNode{n, a.spans[span].letter}
	id, ok := a.uniformNodes[like]
	if !ok {
		id = a.newNode(n, lo)
		a.uniformNodes[like] = id
	}
	return id
}

// newNode is node without the shortcut for uniform nodes: it computes each entry.
func (a *alphabet) newNode(n int, lo rune) int16 {
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
		default:
			t.to[i] = a.node(n-1, r)
		}
	}
	id, ok := a.nodeIDs[t]
	if !ok {
		id = int16(len(a.nodes))
		a.nodeIDs[t] = id
		a.nodes = append(a.nodes, t)
	}
	return id
}

// inUTF8 reports whether a rune r that n more bytes select is valid: in its shortest form, and no surrogate.
func inUTF8(n int, r rune) bool {
	switch n {
	case 2:
		return r >= 0x800 && (r < 0xD800 || r > 0xDFFF)
	case 3:
		return r >= 0x10000 && r <= unicode.MaxRune
	}
	return true
}

// spanOf returns the index of the span that contains r.
func (a *alphabet) spanOf(r rune) int {
	i, _ := slices.BinarySearchFunc(a.spans, r, func(s runeSpan, r rune) int { return int(s.last - r) })
	return i
}

func (a *alphabet) letter(r rune) int16 { return a.spans[a.spanOf(r)].letter }

// makeClasses groups the bytes that no state distinguishes.
func (a *alphabet) makeClasses() {
	known := map[string]uint8{}
	var k []byte
	for b := range 256 {
		k = a.byteSignature(k[:0], byte(b))
		c, ok := known[string(k)]
		if !ok {
			c = uint8(len(known)) // there are only 256 bytes
			known[string(k)] = c
		}
		a.class[b] = c
	}
	a.columns = len(known)
}

// byteSignature appends a key to k. Bytes that no state distinguishes have equal keys.
func (a *alphabet) byteSignature(k []byte, b byte) []byte {
	switch {
	case b == '\n', b == '\r' && a.crlf:
		return append(k, b)
	case b < utf8.RuneSelf && isWord(b):
		return a.signature(append(k, "aw"...), rune(b))
	case b < utf8.RuneSelf || a.bytes:
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

// matchRune reports whether an instruction accepts a rune. [syntax.Inst.MatchRune] ignores the kind of instruction.
func matchRune(in *syntax.Inst, r rune) bool {
	switch in.Op {
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	}
	return in.MatchRune(r)
}
