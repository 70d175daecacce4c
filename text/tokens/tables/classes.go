package tables

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
