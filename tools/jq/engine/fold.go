package engine

import (
	"errors"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// errUnsure means that a fold cannot compute what gojq computes, or that a filter failed on an element: the filter must
// run on the whole array.
var errUnsure = errors.New("unsure")

// figures are the tallies of an array, or of a group of its elements.
type figures struct {
	e   *engine
	of  []plan.Tally
	now []tally
}

func (e *engine) figures(of []plan.Tally) *figures {
	f := &figures{e, of, make([]tally, len(of))}
	for i := range of {
		f.now[i] = e.newTally(&of[i])
	}
	return f
}

// add adds an element. The error is errUnsure, or that of the context.
func (f *figures) add(v any) error {
	for i := range f.of {
		if err := f.e.eachResult(f.of[i].Each, v, f.now[i].add); err != nil {
			return err
		}
	}
	return nil
}

// values returns the values of the tallies, on which the rest of the filter runs.
func (f *figures) values() any {
	all := make([]any, len(f.now))
	for i, t := range f.now {
		all[i] = t.value()
	}
	return all
}

// eachResult calls emit with each result of a filter of a fold.
func (e *engine) eachResult(f *plan.Filter, v any, emit func(any) error) error {
	r := e.run(f, v, emit)
	switch {
	case e.ctx.Err() != nil:
		return e.ctx.Err()
	case r.message != "" || r.err != nil:
		return errUnsure
	}
	return nil
}

// fold runs the filter on the array of all records.
func (e *engine) fold(w *decode.Window) error {
	f := e.figures(e.Fold.Tallies)
	s := &sequence{e: e, node: e.Fold.Reads, keeps: true, unit: f.add}
	err := s.drive(w)
	if errors.Is(err, errUnsure) {
		e.Unsure = true
		return nil
	}
	if err != nil {
		return err
	}
	return e.finishFold(f, 0)
}

// foldElements computes the figures of the array that comes next.
func (e *engine) foldElements(w *decode.Window) (*holder, error) {
	h := &holder{e: e, figures: e.figures(e.Fold.Tallies)}
	s := &sequence{e: e, array: true, node: e.Fold.Reads, keeps: true, unit: h.figures.add}
	return h, e.within(w, frame{array: true}, func() error { return s.drive(w) })
}

// finishFold runs the rest of the filter on the figures of an array, and counts the record.
func (e *engine) finishFold(f *figures, record int64) error {
	before := e.Results
	r := e.run(e.Fold.Final, f.values(), e.result)
	if r.message != "" {
		e.fail(Failure{Record: record, Element: -1, Results: e.Results - before, Message: r.message})
	}
	e.Records = record + 1
	return r.err
}
