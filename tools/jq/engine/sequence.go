package engine

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// decodeLanes is how many goroutines decode batches concurrently.
const decodeLanes = 2

// spareBuffers is how many free buffers a window keeps: one for each of the lanes + 2 batches in flight, and two more.
const spareBuffers = decodeLanes + 4

// maxAhead is the longest value, in bytes, on which a lane runs a filter ahead of its turn.
const maxAhead = 64 << 10

// sequence decodes values that follow each other: the records of the text, or the elements of an array.
//
//	window ─► chunks ─┬─► lane ─┬─► merge, in order ─► unit
//	                  └─► lane ─┘   decodes what the lane has not decoded
//
// The lanes get batches as they are cut; the merging goroutine emits them in the order of the text. At most lanes + 2
// batches are in flight. A text of one batch starts no goroutines. The row "jq: 200 MB, streamable: length" of
// docs/SPEED.md needs the lanes: with one it takes 1.6 times as long.
type sequence struct {
	e     *engine
	array bool
	node  *decode.Projection
	blind bool            // values are checked but not decoded
	keeps bool            // few of the values are kept: each must hold no more memory than its own
	skips bool            // lanes only check values, and call ahead with null
	unit  func(any) error // called with each value, in order
	// called with each value in a lane, instead of unit; false: unit is called with the value in its turn. May be nil.
	ahead func(any, *batchResult) bool
	merge func(*batchResult) error

	record   func(w *decode.Window, c byte) error // reads a value that does not fit the window; may be nil
	elements func(*decode.Decoder) error          // reads an array by the slow decoder; may be nil

	index int64       // of the next value
	quiet atomic.Bool // the rest of the values is only checked
	begun bool        // a batch was dispatched

	todo, order chan *batch
	running     sync.WaitGroup // goroutines
	inFlight    sync.WaitGroup // batches
	stop        atomic.Bool
	err         error // error of the merging goroutine; read it only if no batch is in flight
}

// batch is a chunk with the values or results that a lane has made of it.
type batch struct {
	decode.Chunk
	first bool // the batch begins the sequence
	bare  bool // the text ends with a record that is a number or literal

	n      int64 // values that were decoded
	next   int   // index in Text of the next value
	wrong  bool  // the fast decoder refused the next value
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
	if s.err != nil { // this error is earlier in the text than err
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

// large decodes one value that does not fit the window. ended is true after the last value.
func (s *sequence) large(w *decode.Window) (ended bool, err error) {
	if s.inFlight.Wait(); s.err != nil {
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

// reads returns the projection of the values, an empty one if they are only checked.
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
