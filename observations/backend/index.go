package backend

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// BlockSize is the step of the line index, and the size of a recording's buffer.
const BlockSize = 64 << 10

// An index file is a magic number, two varints per block, and a checksum (crc32c, little-endian) of all before it. The
// first varint counts the newlines in the block. The second counts the runes that start in it, shifted left by two; its
// low bits count the bytes at the block's start that belong to a rune of the block before. At most 6 bytes a block: 96
// KiB for 1 GiB.
//
// Runes are counted as utf8.DecodeRune finds them from the start of the text: an invalid byte is one rune.
const indexMark = "mfl1"

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// Indexer builds an index of the bytes written to it, in writes of any size.
type Indexer struct {
	out    []byte // the finished blocks
	blocks int64  // their number
	size   int64  // bytes counted
	tail   []byte // the bytes after them: an incomplete rune

	newlines, runes, skip int // of the block being counted
}

// Write never fails.
func (x *Indexer) Write(b []byte) (int, error) {
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
func (x *Indexer) count(p []byte) {
	for len(p) > 0 {
		left := BlockSize - int(x.size%BlockSize)
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
func (x *Indexer) endBlock(skip int) {
	x.out = binary.AppendUvarint(x.out, uint64(x.newlines))
	x.out = binary.AppendUvarint(x.out, uint64(x.runes)<<2|uint64(x.skip))
	x.blocks++
	x.newlines, x.runes, x.skip = 0, 0, skip
}

// Finish returns the content of the index file; no bytes may be written after it.
func (x *Indexer) Finish() []byte {
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

// Index locates lines and runes by block.
type Index struct{ body []byte }

var errIndex = errors.New("line index is damaged")

// ParseIndex verifies the checksum of an index file, and its number of blocks against the size of the text.
func ParseIndex(b []byte, size int64) (Index, error) {
	if len(b) < len(indexMark)+4 || string(b[:len(indexMark)]) != indexMark {
		return Index{}, errIndex
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli()) != binary.LittleEndian.Uint32(b[len(body):]) {
		return Index{}, errIndex
	}
	x := Index{body[len(indexMark):]}
	var blocks int64
	for range x.blocks {
		blocks++
	}
	if blocks != blocksOf(size) {
		return Index{}, errIndex
	}
	return x, nil
}

func blocksOf(size int64) int64 { return (size + BlockSize - 1) / BlockSize }

// MaxIndex returns the largest size an index of a text may have.
func MaxIndex(size int64) int64 {
	return int64(len(indexMark)) + 6*blocksOf(size) + 4
}

// Block is one block of the index.
type Block struct {
	At       int64 // offset of its first byte
	Skip     int64 // bytes at its start that belong to a rune of the block before
	Lines    int64 // newlines before it
	Chars    int64 // runes that start before it
	Newlines int64 // newlines in it
	Runes    int64 // runes that start in it
}

// blocks visits all blocks in order.
func (x Index) blocks(visit func(Block) bool) {
	var b Block
	for p := x.body; len(p) > 0; b.At += BlockSize {
		newlines, n := binary.Uvarint(p)
		if n <= 0 {
			return
		}
		runes, m := binary.Uvarint(p[n:])
		if m <= 0 {
			return
		}
		p = p[n+m:]
		b.Newlines, b.Runes, b.Skip = int64(newlines), int64(runes>>2), int64(runes&3)
		if !visit(b) {
			return
		}
		b.Lines += b.Newlines
		b.Chars += b.Runes
	}
}

// Find returns the first block that match accepts, or the last block and false.
func (x Index) Find(match func(Block) bool) (b Block, found bool) {
	for b = range x.blocks {
		if match(b) {
			return b, true
		}
	}
	return b, false
}
