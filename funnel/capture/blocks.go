package capture

import (
	"sync"
	"sync/atomic"
)

// chunkSize is how many bytes are processed at a time: short writes are collected, long ones divided, and each chunk
// ends between two chars. An output of at most one chunk is read by its writer; of a longer one the digest is made in
// one goroutine, the recording and the tokens in another, see asyncConsumer.
const chunkSize = 64 << 10

// An output of over longOutput bytes is processed in chunks of longChunkSize, so that the goroutines synchronize a
// quarter as often.
const (
	longOutput    = 1 << 20
	longChunkSize = 256 << 10
)

// maxBlocks is how many blocks of an output are in use at once. It bounds how far a writer gets ahead of its consumers,
// and so the memory: 64 KiB each, 256 KiB each of a long output.
const maxBlocks = 6

// block is a part of an output that several goroutines read. When the last reader has released it, it is used again.
type block struct {
	data    []byte
	readers atomic.Int32
}

var idleBlocks = sync.Pool{New: func() any { return &block{data: make([]byte, 0, chunkSize)} }}

// blockPool lends at most maxBlocks blocks at a time to one writer.
type blockPool struct {
	blockSize int // bytes of a block, if more than chunkSize
	allocated int
	free      chan *block
}

// acquire returns an empty block with one reader. It waits while all blocks are being read.
func (p *blockPool) acquire() *block {
	if p.free == nil {
		p.free = make(chan *block, maxBlocks)
	}
	var b *block
	select {
	case b = <-p.free:
	default:
		if p.allocated < maxBlocks {
			p.allocated++
			b = idleBlocks.Get().(*block) // nothing else is put there
		} else {
			b = <-p.free
		}
	}
	b.data = b.data[:0]
	if cap(b.data) < p.blockSize {
		b.data = make([]byte, 0, p.blockSize)
	}
	b.readers.Store(1)
	return b
}

// release must be called once by each reader.
func (p *blockPool) release(b *block) {
	if b != nil && b.readers.Add(-1) == 0 {
		p.free <- b
	}
}

// close returns the blocks without readers to idleBlocks. No block may be acquired after it.
func (p *blockPool) close() {
	for p.allocated > 0 {
		select {
		case b := <-p.free:
			if cap(b.data) == chunkSize {
				idleBlocks.Put(b)
			}
			p.allocated--
		default:
			return // the other blocks still have readers: the garbage collector frees them later
		}
	}
}
