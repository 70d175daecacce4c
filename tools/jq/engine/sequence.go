package engine

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// lanes is how many batches are decoded concurrently.
const lanes = 2

// spareBuffers is how many buffers a window keeps: one for each batch under way, and two.
const spareBuffers = lanes + 4

// maxAhead is the longest value, in bytes, on which a lane runs a filter ahead of its turn.
const maxAhead = 64 << 10

// sequence decodes values that follow each other: the records of the text, or the elements of an array.
//
//	window ─► chunks ─┬─► lane ─┬─► merge, in order ─► unit
//	                  └─► lane ─┘   decodes what a lane left
//
// The lanes get batches as they are cut; the merging goroutine emits them in the order of the text. At most lanes + 2
// batches are under way. A text of one batch starts no goroutines. The row "jq: 200 MB, streamable: length" of
// docs/SPEED.md needs the lanes: with one it takes 1.6 times as long.
type sequence struct {
	e     *engine
	array bool
	node  *decode.Projection
	blind bool                    // values are checked, not made
	unit  func(any) error         // one value, in order
	ahead func(any, *batchResult) // one value in a lane, its results kept; nil: unit does it
	merge func(*batchResult) error

	record   func(w *decode.Window, c byte) error // a value that is too large to be held; nil: as any other
	elements func(*decode.Decoder) error          // an array, by the slow decoder, element by element; nil: as any other

	index int64       // of the next value
	quiet atomic.Bool // the rest is only checked
	begun bool        // a batch was dispatched

	todo, order chan *batch
	running     sync.WaitGroup
	under       sync.WaitGroup // batches under way
	stop        atomic.Bool
	err         error // of the merging goroutine; read it only when no batch is under way
}

// batch is a chunk, and what a lane made of it.
type batch struct {
	decode.Chunk
	first bool // it begins the sequence
	bare  bool // the text ends with a record that is a number or literal

	n      int64 // values that were decoded
	next   int   // index in text of the next value
	wrong  bool  // the fast decoder refused that value
	values []any
	result batchResult
	defect error // a panic of the lane
	done   chan struct{}
}

// drive decodes the sequence to its end.
func (s *sequence) drive(w *decode.Window) error {
	err := s.dispatchAll(w)
	if s.todo != nil {
		close(s.todo)
		close(s.order)
		s.running.Wait()
	}
	if s.err != nil { // it was earlier in the text
		return panics.Again(s.err)
	}
	return err
}

func (s *sequence) dispatchAll(w *decode.Window) error {
	for !s.stop.Load() {
		if err := s.e.ctx.Err(); err != nil {
			return err
		}
		c, err := w.Chunk(s.array)
		switch {
		case errors.Is(err, decode.ErrTooLarge):
			ended, err := s.large(w)
			if ended || err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if err := s.dispatch(w, &batch{Chunk: c}); err != nil || c.Last || c.Open {
			return err
		}
	}
	return nil
}

// large decodes one value that does not fit the window.
func (s *sequence) large(w *decode.Window) (ended bool, err error) {
	if s.under.Wait(); s.err != nil {
		return true, panics.Again(s.err)
	}
	c, err := w.Next()
	if err != nil {
		return true, err
	}
	if s.array {
		s.e.path[len(s.e.path)-1].n = s.index
	}
	s.begun = true
	if s.record != nil {
		return false, s.record(w, c)
	}
	v, err := s.e.decodeLarge(w, c, s.reads())
	if err == nil {
		err = s.emit(v)
	}
	if err != nil || !s.array {
		return err != nil, err
	}
	s.e.path[len(s.e.path)-1].n = s.index
	if c, err = w.Next(); err != nil {
		return true, err
	}
	switch c {
	case ',':
		w.Skip(1)
		return false, nil
	case ']':
		w.Skip(1)
		return true, nil
	default:
		return true, s.e.findError(w, afterValue)
	}
}

// reads is the projection of the values.
func (s *sequence) reads() *decode.Projection {
	if s.blind || s.quiet.Load() {
		return &decode.Projection{}
	}
	return s.node
}

// emit calls unit with one value, unless the rest is only checked.
func (s *sequence) emit(v any) error {
	var err error
	if !s.quiet.Load() && !s.blind {
		err = s.unit(v)
	}
	s.index++
	return err
}
