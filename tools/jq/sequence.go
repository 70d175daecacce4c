package jq

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// lanes is how many batches are decoded at once. One more is cut, and one is handed on.
const lanes = 2

// aheadMost is the longest value a filter is run on before its turn, in bytes.
const aheadMost = 64 << 10

// sequence goes through values that follow each other: those of the text, or the elements of an array.
//
//	window ─► drive, cut ─┬─► lane ─┬─► merge, in order ─► unit
//	          by brackets └─► lane ─┘   what a lane leaves is decoded here
//
// Batches are handed to the lanes as they are cut, and on in the order of the
// text; so many are under way as there are lanes and two more. A text of one batch has no lanes but the caller.
type sequence struct {
	e     *engine
	array bool
	node  *node
	blind bool             // values are checked and not made
	unit  func(any) error  // one value, in order
	ahead func(any, *made) // one value in a lane, its results kept; nil: unit does it
	merge func(*made) error
	sieve *sieve // of the filter ahead runs; nil: none

	record   func(w *view, c byte) error // a value that is too large to be held; nil: as any other
	elements func(*decoder) error        // an array, by the slow decoder, element by element; nil: as any other

	index int64       // values that were handed on
	quiet atomic.Bool // the rest is only checked
	begun bool        // something was given

	todo, order chan *batch
	running     sync.WaitGroup
	under       sync.WaitGroup // batches under way
	stop        atomic.Bool
	err         error // of the one that merges: to be looked at when nothing is under way
}

// batch is some values with what stands between them.
type batch struct {
	text  []byte
	at    int64 // in the whole text
	first bool  // it begins the sequence
	last  bool  // the end of the array follows
	open  bool  // the text ends here
	bare  bool  // with a record that is a number or literal

	n      int64 // values a lane is done with
	next   int   // where in text the next one begins
	wrong  bool  // quick refused what stands there
	values []any
	made   made
	defect error // a panic of the lane
	done   chan struct{}
}

// drive goes to the end of the sequence.
func (s *sequence) drive(w *view) error {
	err := s.batches(w)
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

func (s *sequence) batches(w *view) error {
	for !s.stop.Load() {
		if err := s.e.ctx.Err(); err != nil {
			return err
		}
		c, err := s.seek(w)
		switch {
		case errors.Is(err, errTooLarge):
			ended, err := s.large(w)
			if ended || err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		n := c.cut
		switch {
		case c.ended:
			n = c.i
		case w.end:
			n = len(w.buf) - w.i
		}
		b := &batch{open: w.end && !c.ended}
		if c.ended {
			if b.last = w.buf[w.i+n] == ']'; !b.last {
				b.open, n = true, n+1 // what is wrong is in the text
			}
		}
		b.text, b.at = w.cut(n)
		if b.last {
			w.i++
		}
		if err := s.give(w, b); err != nil || b.last || b.open {
			return err
		}
	}
	return nil
}

// errTooLarge: a value is longer than what is held.
var errTooLarge = errors.New("too large")

// seek fills the window until there is a batch in it.
func (s *sequence) seek(w *view) (c scan, err error) {
	for {
		c.over(w.buf[w.i:], s.array)
		held := len(w.buf) - w.i
		switch {
		case c.ended || w.end || c.cut > 0 && held >= w.size*3/4:
			return c, nil
		case c.cut == 0 && held >= windowMost*w.size:
			return c, errTooLarge
		}
		if _, err := w.more(); err != nil {
			return c, err
		}
	}
}

// large takes one value that is longer than what is held.
func (s *sequence) large(w *view) (ended bool, err error) {
	if s.under.Wait(); s.err != nil {
		return true, panics.Again(s.err)
	}
	c, err := w.next()
	if err != nil {
		return true, err
	}
	if s.array {
		s.e.spine[len(s.e.spine)-1].n = s.index
	}
	s.begun = true
	if s.record != nil {
		return false, s.record(w, c)
	}
	v, err := s.e.big(w, c, s.reads())
	if err == nil {
		err = s.hand(v)
	}
	if err != nil || !s.array {
		return err != nil, err
	}
	s.e.spine[len(s.e.spine)-1].n = s.index
	if c, err = w.next(); err != nil {
		return true, err
	}
	switch c {
	case ',':
		w.i++
		return false, nil
	case ']':
		w.i++
		return true, nil
	default:
		return true, s.e.wrong(w, afterValue)
	}
}

// reads is what is read of a value here.
func (s *sequence) reads() *node {
	if s.blind || s.quiet.Load() {
		return &node{}
	}
	return s.node
}

// hand gives one value on.
func (s *sequence) hand(v any) error {
	var err error
	if !s.quiet.Load() && !s.blind {
		err = s.unit(v)
	}
	s.index++
	return err
}
