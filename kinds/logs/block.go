package logs

import "github.com/mcp-funnel/mcp-funnel/base/runes"

// lookBytes is the maximum size of a block in bytes.
const lookBytes = 32 << 10

// block is a part of the text that is searched for marks at once. If one of its lines has a mark, all are parsed.
type block struct {
	text   []byte
	has    marks
	ends   [lookBytes / 64]uint64 // bit set of the newlines
	mapped bool                   // ends is computed
}

func (b *block) set(text []byte) {
	b.text, b.mapped = text, false
	b.has.look(text)
}

// newlines returns the bit set of the newlines of the text, whose bit i%64 of word i/64 stands for byte i.
func (b *block) newlines() []uint64 {
	if !b.mapped {
		runes.Newlines(b.text, b.ends[:])
		b.mapped = true
	}
	return b.ends[:(len(b.text)+63)/64]
}
