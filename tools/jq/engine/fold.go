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
	f := &figures{e: e, of: of, now: make([]tally, len(of))}
	for i := range of {
		f.now[i] = newTally(e, &of[i])
	}
	return f
}

// add adds an element. The error is errUnsure, or that of the context.
func (f *figures) add(v any) error {
	for i := range f.of {
		t := &f.of[i]
		if err := f.e.eachResult(t.Each, v, func(v any) error { return f.addTo(t, f.now[i], v) }); err != nil {
			return err
		}
	}
	return nil
}

// addTo adds one value to a tally.
func (f *figures) addTo(t *plan.Tally, to tally, v any) error {
	var key []any
	if t.Keyed() {
		err := f.e.eachResult(t.By, v, func(w any) error {
			key = append(key, w)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if t.Part == nil {
		return to.add(key, v)
	}
	return f.e.eachResult(t.Part, v, func(part any) error { return to.add(key, part) })
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

// noCell is the cell of an element that has no value for a tally.
type noCell struct{}

// elementAt is the cell of an array or object that is an element: the index of its text in the batch.
type elementAt int

// kept returns a value for a tally to keep. If it is the place of an element, kept decodes the element from the text of
// the batch whose cells are being added.
func (e *engine) kept(v any) (any, error) {
	at, ok := v.(elementAt)
	if !ok {
		return v, nil
	}
	e.fast.Reset(e.merged[at:], false, e.twice.Load())
	if v, ok = e.fast.Value(e.Fold.Reads, 0); !ok {
		return nil, errUnsure
	}
	return v, nil
}

// cells appends to the cells of a batch what the tallies need of a value, in a lane; element says that the value is an
// element. It returns false if that is more than numbers, texts, literals and elements: then the merging goroutine
// adds the element.
func (e *engine) cells(of []plan.Tally, v any, element bool, m *batchResult) bool {
	for i := range of {
		t := &of[i]
		element := element && t.Each == nil
		v, a := direct(t.Each, v)
		switch {
		case a == plan.NoResult:
			m.cells = append(m.cells, noCell{})
			continue
		case a != plan.OneResult || t.Keyed() && !e.cell(t.By, v, false, m):
			return false
		case t.Kind == plan.Length:
			m.cells = append(m.cells, nil)
		case t.Kind == plan.Groups:
			if !e.cells(t.Of, v, element, m) {
				return false
			}
		case !e.cell(t.Part, v, element && t.Part == nil && t.Kind != plan.Sum, m):
			return false
		}
	}
	return true
}

// direct returns the result of a direct filter; nil returns v.
func direct(f *plan.Filter, v any) (any, plan.Answer) {
	if f == nil {
		return v, plan.OneResult
	}
	return f.Direct(v)
}

// cell appends the one result of a filter to the cells. It returns false if there is none, or an array or object that
// is no element.
func (e *engine) cell(f *plan.Filter, v any, element bool, m *batchResult) bool {
	v, a := direct(f, v)
	switch v.(type) {
	case []any, map[string]any:
		if !element {
			return false
		}
		v = elementAt(m.at)
	}
	m.cells = append(m.cells, v)
	return a == plan.OneResult
}

// elementCells is cells for one element, as a whole or not at all.
func (e *engine) elementCells(v any, m *batchResult) bool {
	before := len(m.cells)
	if !e.cells(e.Fold.Tallies, v, true, m) {
		m.cells = m.cells[:before]
		return false
	}
	return true
}

// addCells adds the cells of the elements of a batch.
func (f *figures) addCells(cells []any) (err error) {
	for len(cells) > 0 && err == nil {
		cells, err = f.addElement(cells)
	}
	return errors.Join(err, f.settle())
}

// addPlaces adds the elements of a batch to tallies that need only their places.
func (f *figures) addPlaces(cells []any) (err error) {
	for i, t := range f.now {
		n := f.of[i].N
		of := cells
		if f.of[i].Kind == plan.Ends && n < 0 {
			of = cells[max(0, len(cells)+n):]
		}
		for _, cell := range of {
			if err = t.add(nil, cell); err != nil {
				return err
			}
		}
	}
	return f.settle()
}

// settle decodes the elements that tallies have kept by their place in a batch.
func (f *figures) settle() (err error) {
	for _, t := range f.now {
		if last, ok := t.(*ends); ok && last.n < 0 && err == nil {
			err = last.settle()
		}
	}
	return err
}

// addElement adds the first cells, which are those of one element, and returns the rest.
func (f *figures) addElement(cells []any) (rest []any, err error) {
	for i := range f.of {
		t, to := &f.of[i], f.now[i]
		if _, none := cells[0].(noCell); none {
			cells = cells[1:]
			continue
		}
		var key []any
		if t.Keyed() {
			key, cells = cells[:1:1], cells[1:]
		}
		if t.Kind != plan.Groups {
			v := cells[0]
			if err, cells = to.add(key, v), cells[1:]; err != nil {
				return nil, err
			}
			continue
		}
		all, _ := to.(*groups)
		g, _ := all.group(key)
		if g == nil {
			return nil, errUnsure
		}
		if cells, err = g.addElement(cells); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// folding returns a sequence of the elements that adds each to the figures.
func (e *engine) folding(f *figures, array bool) *sequence {
	s := &sequence{e: e, array: array, node: e.Fold.Reads, keeps: true, unit: f.add}
	switch {
	case e.Fold.Ends:
		s.skips = true
		s.ahead = func(_ any, m *batchResult) bool {
			m.cells = append(m.cells, elementAt(m.at))
			return true
		}
		s.merge = func(m *batchResult) error {
			e.merged = m.text
			return f.addPlaces(m.cells)
		}
	case e.Fold.Direct:
		s.ahead = e.elementCells
		s.merge = func(m *batchResult) error {
			e.merged = m.text
			return f.addCells(m.cells)
		}
	}
	return s
}

// fold runs the filter on the array of all records.
func (e *engine) fold(w *decode.Window) error {
	f := e.figures(e.Fold.Tallies)
	err := e.folding(f, false).drive(w)
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
	return h, e.within(w, container{array: true}, func() error { return e.folding(h.figures, true).drive(w) })
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
