package tables

import "unicode"

// Class is a bit set: it classifies a rune for the patterns that split a text.
type Class uint8

// The classes.
const (
	Upper   Class = 1 << iota // Lu Lt Lm Lo M
	Lower                     // Ll Lm Lo M
	Letter                    // L
	Number                    // N
	Space                     // \s
	Newline                   // \r \n
)

// The class table has two stages: for each block of runes, the index of its distinct block (one byte each), then the
// distinct blocks with one byte per rune. The first block is ASCII.
const (
	blockSize = 128
	blocks    = 0x110000 / blockSize
)

// ClassOf returns the class of a rune.
func ClassOf(r rune) Class {
	return Class(classes[blocks+blockSize*int(classes[uint32(r)/blockSize])+int(uint32(r)%blockSize)])
}

// ASCIIClass is ClassOf for a byte below 0x80.
func ASCIIClass(b byte) Class { return Class(classes[blocks+int(b)]) }

// BuildClasses builds the class table from package unicode.
func BuildClasses() []byte {
	table := make([]byte, blocks)
	seen := map[[blockSize]byte]int{}
	for i := range blocks {
		var block [blockSize]byte
		for j := range block {
			block[j] = byte(classify(rune(i*blockSize + j)))
		}
		n, ok := seen[block]
		if !ok {
			n = len(seen)
			seen[block] = n
			table = append(table, block[:]...)
		}
		table[i] = byte(n)
	}
	if len(seen) > 256 {
		panic("tables: too many different blocks of runes")
	}
	return table
}

func classify(r rune) Class {
	switch {
	case r == '\r' || r == '\n':
		return Space | Newline
	case unicode.IsSpace(r):
		return Space
	case unicode.Is(unicode.Ll, r):
		return Letter | Lower
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return Letter | Upper
	case unicode.IsLetter(r): // Lm, Lo
		return Letter | Upper | Lower
	case unicode.IsMark(r):
		return Upper | Lower
	case unicode.IsNumber(r):
		return Number
	}
	return 0
}
