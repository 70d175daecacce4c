package observations

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/runes"
)

// blockSize is the step of the line index, and what a recording holds in memory.
const blockSize = 64 << 10

// An index file is a mark, two varints a block, and a checksum (crc32c,
// little-endian) of all before it. The first varint counts the newlines in the
// block. The second counts the runes that start in it, shifted left by two; its
// low bits say how many bytes at the block's start belong to a rune of the
// block before. At most 6 bytes a block: 96 KiB for 1 GiB.
//
// Runes are what utf8.DecodeRune finds from the start of the text: an invalid
// byte is one.
const indexMark = "mfl1"

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// indexer takes an index while the bytes pass, in pieces of any size.
type indexer struct {
	out   []byte // the blocks that ended
	ended int64  // how many
	size  int64  // bytes seen

	// The block being counted: the one in which the oldest open rune starts.
	newlines, runes, skip int

	// A rune at the end of what was seen that is not whole yet. Where it
	// crosses into the next block, over of its bytes are there already, and
	// next newlines.
	tail       [utf8.UTFMax]byte
	held       int
	over, next int
}

func (x *indexer) add(b []byte) {
	for len(b) > 0 {
		if x.held > 0 {
			x.push(b[0])
			b = b[1:]
			continue
		}
		n := int(min(int64(len(b)), blockSize-x.size%blockSize))
		p := b[:n]
		open := unfinished(p)
		started, newlines := runes.WithLines(p[:n-open])
		x.newlines += newlines
		x.runes += started
		x.held = copy(x.tail[:], p[n-open:])
		x.size += int64(n)
		b = b[n:]
		if x.size%blockSize == 0 && x.held == 0 {
			x.end(0)
		}
	}
}

// push takes one byte while a rune is open.
func (x *indexer) push(c byte) {
	if x.over > 0 || x.size%blockSize == 0 {
		x.over++
	}
	x.tail[x.held] = c
	x.held++
	x.size++
	if c == '\n' {
		if x.over > 0 {
			x.next++
		} else {
			x.newlines++
		}
	}
	for x.held > 0 && utf8.FullRune(x.tail[:x.held]) {
		_, n := utf8.DecodeRune(x.tail[:x.held])
		x.take(n)
	}
	if x.held == 0 && x.over == 0 && x.size%blockSize == 0 {
		x.end(0)
	}
}

// take counts the rune of n bytes at the start of the tail.
func (x *indexer) take(n int) {
	x.runes++
	x.held = copy(x.tail[:], x.tail[n:x.held])
	if x.over > 0 && x.held <= x.over {
		x.end(x.over - x.held)
	}
}

// end closes a block; skip is of the next one.
func (x *indexer) end(skip int) {
	x.out = binary.AppendUvarint(x.out, uint64(x.newlines))
	x.out = binary.AppendUvarint(x.out, uint64(x.runes)<<2|uint64(x.skip))
	x.ended++
	x.newlines, x.runes, x.skip = x.next, 0, skip
	x.over, x.next = 0, 0
}

// finish ends the text and returns the index as a file.
func (x *indexer) finish() []byte {
	for x.held > 0 {
		x.take(1) // a rune cut off by the end: each byte counts
	}
	if x.ended < blocksOf(x.size) {
		x.end(0)
	}
	return seal(append([]byte(indexMark), x.out...))
}

func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// unfinished is how many bytes at the end of p begin a rune that is not whole.
func unfinished(p []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if c := p[len(p)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return i
			}
			break
		}
	}
	return 0
}

// index answers where lines and runes are, to the block.
type index struct{ body []byte }

var errIndex = errors.New("line index is damaged")

// parseIndex checks the file against its checksum and against the size of the text.
func parseIndex(b []byte, size int64) (index, error) {
	if len(b) < len(indexMark)+4 || string(b[:len(indexMark)]) != indexMark {
		return index{}, errIndex
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli()) != binary.LittleEndian.Uint32(b[len(body):]) {
		return index{}, errIndex
	}
	x := index{body[len(indexMark):]}
	var blocks int64
	for range x.blocks {
		blocks++
	}
	if blocks != blocksOf(size) {
		return index{}, errIndex
	}
	return x, nil
}

func blocksOf(size int64) int64 { return (size + blockSize - 1) / blockSize }

// maxIndex is the size of the largest index of a text.
func maxIndex(size int64) int64 {
	return int64(len(indexMark)) + 6*blocksOf(size) + 4
}

// block is one step of the index.
type block struct {
	at       int64 // byte it starts at
	skip     int64 // bytes of the rune before
	lines    int64 // newlines before it
	chars    int64 // runes that start before it
	newlines int64 // in it
	runes    int64 // that start in it
}

// blocks visits all blocks in order.
func (x index) blocks(visit func(block) bool) {
	var b block
	for p := x.body; len(p) > 0; b.at += blockSize {
		newlines, n := binary.Uvarint(p)
		if n <= 0 {
			return
		}
		runes, m := binary.Uvarint(p[n:])
		if m <= 0 {
			return
		}
		p = p[n+m:]
		b.newlines, b.runes, b.skip = int64(newlines), int64(runes>>2), int64(runes&3)
		if !visit(b) {
			return
		}
		b.lines += b.newlines
		b.chars += b.runes
	}
}

// newline finds the block that holds the nth newline, counted from 1; all is
// how many there are where it is not among them.
func (x index) newline(n int64) (in block, all int64, found bool) {
	for b := range x.blocks {
		if all = b.lines + b.newlines; n <= all {
			return b, all, true
		}
	}
	return block{}, all, false
}

// char finds the block in which rune n starts, counted from 0; all is how many
// there are where it is not among them.
func (x index) char(n int64) (in block, all int64, found bool) {
	for b := range x.blocks {
		if all = b.chars + b.runes; n < all {
			return b, all, true
		}
	}
	return block{}, all, false
}
