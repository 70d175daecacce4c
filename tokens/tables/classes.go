package tables

import "unicode"

// Class is what a rune is to the patterns that cut a text into pieces, as bits.
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

// The classes in two stages: a block of runes' number among the different blocks, then the blocks, a byte
// a rune. The first block is ASCII.
const (
	blockSize = 128
	blocks    = 0x110000 / blockSize
)

// ClassOf is the class of a rune.
func ClassOf(r rune) Class {
	return Class(classes[blocks+blockSize*int(classes[uint32(r)/blockSize])+int(uint32(r)%blockSize)])
}

// ASCIIClass is ClassOf a byte below 0x80.
func ASCIIClass(b byte) Class { return Class(classes[blocks+int(b)]) }

// BuildClasses makes the table of the classes from package unicode.
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
