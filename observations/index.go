package observations

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// blockSize is the step of the line index, and the size of a recording's buffer.
const blockSize = 64 << 10

// An index file is a magic number, two varints per block, and a checksum (crc32c, little-endian) of all before it. The
// first varint counts the newlines in the block. The second counts the runes that start in it, shifted left by two; its
// low bits count the bytes at the block's start that belong to a rune of the block before. At most 6 bytes a block: 96
// KiB for 1 GiB.
//
// Runes are counted as utf8.DecodeRune finds them from the start of the text: an invalid byte is one rune.
const indexMark = "mfl1"

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// indexer builds an index of the bytes written to it, in writes of any size.
type indexer struct {
	out    []byte // the finished blocks
	blocks int64  // their number
	size   int64  // bytes written

	// The block being counted: the one in which the oldest incomplete rune starts.
	newlines, runes, skip int

	// An incomplete rune at the end of the bytes so far. If it crosses into the next block, tailInNext counts its bytes
	// there, and newlinesInNext the newlines among them.
	tail                       [utf8.UTFMax]byte
	tailLen                    int
	tailInNext, newlinesInNext int
}

// Write never fails.
func (x *indexer) Write(b []byte) (int, error) {
	all := len(b)
	for len(b) > 0 {
		if x.tailLen > 0 {
			x.addByte(b[0])
			b = b[1:]
			continue
		}
		n := int(min(int64(len(b)), blockSize-x.size%blockSize))
		p := b[:n]
		whole := runes.Complete(p)
		x.newlines += bytes.Count(p[:whole], []byte{'\n'})
		x.runes += runes.Count(p[:whole])
		x.tailLen = copy(x.tail[:], p[whole:])
		x.size += int64(n)
		b = b[n:]
		if x.size%blockSize == 0 && x.tailLen == 0 {
			x.endBlock(0)
		}
	}
	return all, nil
}

// addByte adds one byte while a rune is incomplete.
func (x *indexer) addByte(c byte) {
	if x.tailInNext > 0 || x.size%blockSize == 0 {
		x.tailInNext++
	}
	x.tail[x.tailLen] = c
	x.tailLen++
	x.size++
	if c == '\n' {
		if x.tailInNext > 0 {
			x.newlinesInNext++
		} else {
			x.newlines++
		}
	}
	for x.tailLen > 0 && utf8.FullRune(x.tail[:x.tailLen]) {
		_, n := utf8.DecodeRune(x.tail[:x.tailLen])
		x.countRune(n)
	}
	if x.tailLen == 0 && x.tailInNext == 0 && x.size%blockSize == 0 {
		x.endBlock(0)
	}
}

// countRune counts the rune of n bytes at the start of the tail.
func (x *indexer) countRune(n int) {
	x.runes++
	x.tailLen = copy(x.tail[:], x.tail[n:x.tailLen])
	if x.tailInNext > 0 && x.tailLen <= x.tailInNext {
		x.endBlock(x.tailInNext - x.tailLen)
	}
}

// endBlock finishes a block. skip is how many bytes at the start of the next block belong to a rune of this one.
func (x *indexer) endBlock(skip int) {
	x.out = binary.AppendUvarint(x.out, uint64(x.newlines))
	x.out = binary.AppendUvarint(x.out, uint64(x.runes)<<2|uint64(x.skip))
	x.blocks++
	x.newlines, x.runes, x.skip = x.newlinesInNext, 0, skip
	x.tailInNext, x.newlinesInNext = 0, 0
}

// finish returns the content of the index file; no bytes may be written after it.
func (x *indexer) finish() []byte {
	for x.tailLen > 0 {
		x.countRune(1) // the end cuts a rune: each of its bytes counts as one
	}
	if x.blocks < blocksOf(x.size) {
		x.endBlock(0)
	}
	return withChecksum(append([]byte(indexMark), x.out...))
}

func withChecksum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// index locates lines and runes by block.
type index struct{ body []byte }

var errIndex = errors.New("line index is damaged")

// parseIndex verifies the checksum of an index file, and its number of blocks against the size of the text.
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

// maxIndex returns the largest size an index of a text may have.
func maxIndex(size int64) int64 {
	return int64(len(indexMark)) + 6*blocksOf(size) + 4
}

// block is one block of the index.
type block struct {
	at       int64 // offset of its first byte
	skip     int64 // bytes at its start that belong to a rune of the block before
	lines    int64 // newlines before it
	chars    int64 // runes that start before it
	newlines int64 // newlines in it
	runes    int64 // runes that start in it
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

// find returns the first block that match accepts, or the last block and false.
func (x index) find(match func(block) bool) (b block, found bool) {
	for b = range x.blocks {
		if match(b) {
			return b, true
		}
	}
	return b, false
}
