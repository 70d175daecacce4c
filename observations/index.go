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
	size   int64  // bytes counted
	tail   []byte // the bytes after them: an incomplete rune

	newlines, runes, skip int // of the block being counted
}

// Write never fails.
func (x *indexer) Write(b []byte) (int, error) {
	all := len(b)
	if n := len(x.tail); n > 0 {
		x.tail = append(x.tail, b[:min(all, utf8.UTFMax)]...)
		whole := runes.Complete(x.tail)
		x.count(x.tail[:whole])
		if whole < n { // b is too short to complete it
			x.tail = append(x.tail[:0], x.tail[whole:]...)
			return all, nil
		}
		x.tail, b = x.tail[:0], b[whole-n:]
	}
	whole := runes.Complete(b)
	x.count(b[:whole])
	x.tail = append(x.tail, b[whole:]...)
	return all, nil
}

// count counts complete runes. A rune that crosses the end of a block belongs to that block.
func (x *indexer) count(p []byte) {
	for len(p) > 0 {
		left := blockSize - int(x.size%blockSize)
		n := runes.Complete(p[:min(left, len(p))])
		for n < min(left, len(p)) {
			_, size := utf8.DecodeRune(p[n:])
			n += size
		}
		x.newlines += bytes.Count(p[:n], []byte{'\n'})
		x.runes += runes.Count(p[:n])
		x.size += int64(n)
		p = p[n:]
		if n >= left {
			x.endBlock(n - left)
		}
	}
}

// endBlock finishes a block. skip is how many bytes at the start of the next block belong to a rune of this one.
func (x *indexer) endBlock(skip int) {
	x.out = binary.AppendUvarint(x.out, uint64(x.newlines))
	x.out = binary.AppendUvarint(x.out, uint64(x.runes)<<2|uint64(x.skip))
	x.blocks++
	x.newlines, x.runes, x.skip = 0, 0, skip
}

// finish returns the content of the index file; no bytes may be written after it.
func (x *indexer) finish() []byte {
	x.count(x.tail) // the end cuts a rune: each of its bytes counts as one
	x.tail = nil
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
