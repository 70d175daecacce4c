// Package tokens counts the tokens of a text in a model's vocabulary.
//
// Its counts equal those of tiktoken-go; its tests compare the two. tiktoken-go does not do the counting itself,
// because its time is quadratic in the length of unbroken text.
//
// A piece is a part of a text that the encoding merges by itself, such as a word or a number. A rank is the number of a
// token in its vocabulary; lower ranks merge first.
package tokens

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/mcp-funnel/mcp-funnel/text/tokens/tables"
)

// Counter counts tokens of one model. It is safe for concurrent use.
type Counter struct {
	model      Model
	piece      func(text []byte) int // returns the length of the text's first piece
	vocabulary func() *tables.Vocabulary
	cached     atomic.Pointer[pieceCounter] // survives garbage collection: its caches speed up small texts
	pool       sync.Pool                    // of *pieceCounter, for concurrent counts
}

// New returns the counter of an encoding. It takes no time: the vocabulary is embedded and read in place. It panics
// if the encoding is not one of the constants.
func New(e Encoding) *Counter { return For(Model{Encoding: e}) }

// For returns the counter of a model. It panics on an unknown encoding.
func For(m Model) *Counter {
	switch m.Encoding {
	case O200k:
		return &Counter{model: m, piece: nextO200k, vocabulary: tables.O200k}
	case CL100k:
		return &Counter{model: m, piece: nextCL100k, vocabulary: tables.CL100k}
	}
	panic("tokens: no encoding " + string(m.Encoding))
}

// Model returns the model whose tokens are counted.
func (c *Counter) Model() Model { return c.model }

// Count returns the number of tokens in text. The count is exact unless the model is estimated. The time is linear in
// the length of the text, even without word boundaries. Invalid UTF-8 counts as U+FFFD.
func (c *Counter) Count(text string) int {
	return int(c.Total(text).N)
}

// Total returns the number of tokens with its margin of error.
func (c *Counter) Total(text string) Total {
	// never written to; copying the text would cost a tenth of the time
	n := c.countAll(unsafe.Slice(unsafe.StringData(text), len(text)))
	return Total{N: int64(n)}.forModel(c.model)
}

func (c *Counter) countAll(text []byte) int {
	n, _ := c.count(toValidUTF8(text), true)
	return n
}

// count counts the pieces of text, which must be valid UTF-8, and returns the number of bytes counted. If final is
// false, more text may follow: count skips the pieces at the end that could still grow.
func (c *Counter) count(text []byte, final bool) (n, used int) {
	d := c.acquire()
	defer c.release(d)
	certain := len(text)
	if !final {
		certain = stableEnd(text)
	}
	for used < len(text) {
		size := c.piece(text[used:])
		if used+size > certain {
			break
		}
		n += d.countPiece(text, used, size)
		used += size
	}
	return n, used
}

func (c *Counter) acquire() *pieceCounter {
	d := c.cached.Swap(nil)
	if d == nil {
		d, _ = c.pool.Get().(*pieceCounter)
	}
	if d == nil {
		return &pieceCounter{Vocabulary: c.vocabulary()}
	}
	return d
}

// release makes a piece counter available again.
func (c *Counter) release(d *pieceCounter) {
	if !c.cached.CompareAndSwap(nil, d) {
		c.pool.Put(d)
	}
}
