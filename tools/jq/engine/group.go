package engine

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// This file runs several filters over one text, which is read and decoded once:
//
//	reader, an engine that decodes what any filter reads ─► feed of each filter ─► engine of that filter
//
// The engines are coroutines: one runs at a time, until it needs the next value. So they may share the values, and
// memory holds one record, or one element of an array, for all of them.

// bracket is a value of a feed that stands for the beginning or the end of an array, which is fed by element.
type bracket byte

// feed passes the values of a text to the engine of one filter.
type feed struct {
	v      any
	full   bool                    // v waits to be taken
	end    error                   // why there are no more values: io.EOF or errBroken; nil: there may be more
	wait   func() bool             // lets the reader go on; false if the run is stopped
	resume func() (struct{}, bool) // lets the engine go on; false once it has ended
	ended  bool                    // the engine has ended
	err    error                   // with that error
	until  time.Time               // when results that nobody wants are no longer counted; zero: all were wanted
}

// countFor is how long a filter of several counts results that are not wanted: the others wait for it.
var countFor = 2 * time.Second

// errUncounted ends a filter whose results are too many to be counted.
var errUncounted = errors.New("uncounted")

// peek returns the next value and leaves it. The error is that of the end of the text.
func (f *feed) peek() (any, error) {
	for !f.full && f.end == nil {
		if !f.wait() {
			return nil, context.Canceled
		}
	}
	if !f.full {
		return nil, f.end
	}
	return f.v, nil
}

// next returns the next value and takes it.
func (f *feed) next() (any, error) {
	v, err := f.peek()
	f.v, f.full = nil, false
	return v, err
}

// overdue reports whether results that nobody wants were counted for long enough.
func (f *feed) overdue() bool {
	if f.until.IsZero() {
		f.until = time.Now().Add(countFor)
	}
	return time.Now().After(f.until)
}

// fanout passes the values of a text to all engines of a group.
type fanout struct {
	of        []*engine
	byElement bool               // arrays are passed by element
	element   *decode.Projection // parts that the filters read of the elements
}

// send passes a value to each engine. The error is errHalted if all have ended.
func (g *fanout) send(v any) error {
	left := false
	for _, e := range g.of {
		f := e.feed
		if f.ended {
			continue
		}
		f.v, f.full = v, true
		_, more := f.resume()
		f.ended = !more
		left = left || more
	}
	if !left {
		return errHalted
	}
	return nil
}

// RunGroup runs each filter of j.Filters over the text; out has the receiver of its results. Its outcome is that of the
// filter alone. With Unsure it must be run alone. The error is that of [Job.Run].
func (j *Job) RunGroup(ctx context.Context, r io.Reader, out []Rows) ([]Outcome, error) {
	g := &fanout{byElement: !j.Slurp, element: &decode.Projection{}}
	of := &decode.Projection{} // parts that the filters read of a record
	for i, filter := range j.Filters {
		one := *j
		one.Filter, one.Filters = filter, nil
		e := &engine{Job: &one, ctx: ctx, out: out[i], feed: &feed{}}
		g.of = append(g.of, e)
		var err error
		if e.Plan, err = one.Prepare(); err != nil {
			e.Compile, e.feed.ended = err.Error(), true
			continue
		}
		of = of.Union(e.Reads)
		if e.streams(!j.Slurp) {
			g.element = g.element.Union(e.Stream.Reads)
		} else {
			g.element = g.element.Union(e.Reads.Element())
		}
		resume, stop := iter.Pull(func(yield func(struct{}) bool) {
			e.feed.wait = func() bool { return yield(struct{}{}) }
			e.feed.err = e.consume()
		})
		defer stop()
		e.feed.resume = resume
	}
	one := *j
	one.Slurp = j.Slurp && j.Text
	reader := &engine{Job: &one, ctx: ctx, out: out[0], Plan: &plan.Plan{Reads: of}, fanout: g}
	if j.Slurp {
		reader.Reads = g.element
	}
	err := reader.read(r)
	outcomes := make([]Outcome, len(g.of))
	for i, e := range g.of {
		f := e.feed
		if f.end = io.EOF; reader.Broken != nil {
			f.end = errBroken
		}
		if err == nil && !f.ended {
			_, _ = f.resume()
		}
		switch {
		case errors.Is(f.err, errUncounted):
			e.Uncounted = true
		case err == nil && !errors.Is(f.err, errHalted) && !errors.Is(f.err, errBroken):
			err = f.err
		}
		e.Broken, e.Twice, e.Open = reader.Broken, reader.Twice, reader.Open
		outcomes[i] = e.Outcome
	}
	return outcomes, err
}

// streams reports whether an engine of a group runs its filter on one element of an array, or with slurp one record,
// after the other. A range of an array that is emitted at once needs the end of the array first.
func (e *engine) streams(array bool) bool {
	s := e.Stream
	return s != nil && s.Whole() && !e.Whole && (!array || s.Form != plan.Flow || s.Once())
}

// consume runs the filter on the values of the feed.
func (e *engine) consume() error {
	if e.Slurp && !e.Text {
		return e.slurp()
	}
	for {
		v, err := e.feed.peek()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && v == bracket('['):
			err = e.array()
		case err == nil:
			_, _ = e.feed.next()
			err = e.record(v)
		}
		if err != nil {
			return err
		}
	}
}

// array runs the filter on the array that comes next.
func (e *engine) array() error {
	if e.streams(true) {
		err := e.elements(nil, true)
		if errors.Is(err, errUnsure) {
			e.Unsure, err = true, errHalted
		}
		return err
	}
	all := []any{}
	_, _ = e.feed.next() // the bracket
	for {
		v, err := e.feed.next()
		if err != nil {
			return err
		}
		if v == bracket(']') {
			return e.record(all)
		}
		all = append(all, v)
	}
}

// feedArray sends the elements of the array that comes next, between brackets.
func (e *engine) feedArray() error {
	err := e.d.Bracket()
	if err == nil {
		err = e.fanout.send(bracket('['))
	}
	for err == nil && e.d.Kind() != ']' {
		var v any
		if v, err = e.decode(e.d, e.fanout.element); err == nil {
			err = e.fanout.send(v)
		}
	}
	if err == nil {
		err = e.d.Bracket()
	}
	if err == nil {
		return e.fanout.send(bracket(']'))
	}
	if errors.Is(err, errHalted) {
		return err
	}
	return e.syntax(e.d, decode.Unexpected(err))
}
