// Package tokens says what a text costs a model to read.
//
// It counts; it does not split text into tokens for anyone, and it decides
// nothing about what is shown.
//
// The counts equal those of tiktoken-go, the oracle of its tests, which is not
// used for the counting itself: it takes time quadratic in the length of an unbroken run.
package tokens

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// Encoding is the name of a vocabulary.
type Encoding string

// The encodings counted.
const (
	O200k  Encoding = "o200k_base" // the default
	CL100k Encoding = "cl100k_base"
)

// Counter counts tokens of one model. Safe for concurrent use.
type Counter struct {
	model      Model
	piece      func(text []byte) int    // the length of its first piece
	starts     func(text []byte) uint64 // where some of its first pieces begin, by its first block; nil: only piece knows
	vocabulary func() *tables.Vocabulary
	kept       atomic.Pointer[desk] // which no collection of garbage takes: what it remembers is a part of a small text's time
	desks      sync.Pool            // of *desk, where several count at once
}

// New returns the counter of an encoding, at once: its vocabulary is embedded, and read in place.
// An encoding that is not one of those above is a mistake of the program and panics.
func New(e Encoding) *Counter { return For(Model{Encoding: e}) }

// For returns the counter of a model, as New does.
func For(m Model) *Counter {
	switch m.Encoding {
	case O200k:
		return &Counter{model: m, piece: nextO200k, starts: startsO200k, vocabulary: tables.O200k}
	case CL100k:
		return &Counter{model: m, piece: nextCL100k, vocabulary: tables.CL100k}
	}
	panic("tokens: no encoding " + string(m.Encoding))
}

// Model is what the counter counts for.
func (c *Counter) Model() Model { return c.model }

// Count is exact where the model is not estimated, and takes time in proportion to the text's length however
// long its unbroken runs. Invalid UTF-8 counts as U+FFFD.
func (c *Counter) Count(text string) int {
	return int(c.Total(text).N)
}

// Total is Count, and how sure it is.
func (c *Counter) Total(text string) Total {
	n := c.all(unsafe.Slice(unsafe.StringData(text), len(text))) // it is only read, and a copy would cost a tenth of the counting
	return Total{N: int64(n)}.of(c.model)
}

func (c *Counter) all(text []byte) int {
	n, _ := c.count(valid(text), true)
	return n
}

// count counts the pieces of text, which is valid UTF-8, and returns how many bytes they took. Where more
// text may follow (not final), pieces that could still grow are left.
func (c *Counter) count(text []byte, final bool) (n, used int) {
	d := c.desk()
	defer c.leave(d)
	certain := len(text)
	if !final {
		certain = settled(text)
	}
	for used < len(text) {
		if c.starts != nil && certain-used >= block {
			if starts := c.starts(text[used:]) &^ 1; starts != 0 {
				for begin := used; starts != 0; starts &= starts - 1 {
					end := begin + bits.TrailingZeros64(starts)
					n += d.next(text, used, end-used)
					used = end
				}
				continue
			}
		}
		size := c.piece(text[used:])
		if used+size > certain {
			break
		}
		n += d.next(text, used, size)
		used += size
	}
	return n + d.settle(text), used
}

func (c *Counter) desk() *desk {
	d := c.kept.Swap(nil)
	if d == nil {
		d, _ = c.desks.Get().(*desk)
	}
	if d == nil {
		return &desk{Vocabulary: c.vocabulary()}
	}
	d.misses = 0 // of a counting that a panic has ended
	return d
}

// leave puts a desk back.
func (c *Counter) leave(d *desk) {
	if !c.kept.CompareAndSwap(nil, d) {
		c.desks.Put(d)
	}
}
