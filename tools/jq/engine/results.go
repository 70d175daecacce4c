package engine

import (
	"errors"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// errEnough ends a record that has given as many results as the filter wants.
var errEnough = errors.New("enough")

// holder collects the results of a filter that runs element by element.
type holder struct {
	e       *engine
	how     style
	held    batchResult // the results until the whole record is known to be JSON
	n       int64       // results
	started bool        // the filter ran on an element
	figures *figures    // of a fold

	message string // why the filter failed
	element int64  // index of the element on which it failed
}

// styles are the styles of held results; asRow is the default.
var styles = map[plan.Form]style{plan.Gather: asJSON, plan.Count: unwritten}

// value adds a result. It returns errEnough after the last result that the filter wants.
func (h *holder) value(v any) error {
	h.n++
	var err error
	if h.e.Stream.Flows() {
		err = h.e.result(v)
	} else {
		err = h.held.add(h.e, v, h.how)
	}
	if err == nil && h.e.Stream.Most >= 0 && h.n >= h.e.Stream.Most {
		return errEnough
	}
	return err
}

// text adds a result that a lane has encoded. Lanes run no filters that limit the number of results.
func (h *holder) text(b []byte) error {
	h.n++
	if h.e.Stream.Flows() {
		return h.e.row(b)
	}
	h.held.n++
	h.held.append(b)
	return nil
}

// runElements runs the filter on the elements of the array that comes next.
func (e *engine) runElements(w *decode.Window) (*holder, error) {
	p := e.Stream
	h := &holder{e: e, how: styles[p.Form]}
	plain := p.From == 0 && p.To < 0
	if p.Form == plan.Folded {
		return e.foldElements(w)
	}
	s := &sequence{e: e, array: true, node: e.EachReads, blind: plain && p.Form == plan.Count && p.Each == nil}
	s.unit = func(v any) error {
		if s.index < p.From {
			return nil
		}
		if p.To >= 0 && s.index >= p.To {
			s.quiet.Store(true)
			return nil
		}
		h.started = true
		return h.runEnded(s, e.run(e.Each, v, h.value))
	}
	if plain && p.Most < 0 && e.Each.Bounded() {
		s.ahead = e.elementAhead(h.how)
		s.merge = func(m *batchResult) error { return h.merge(s, m) }
	}
	err := e.within(w, container{array: true}, func() error { return s.drive(w) })
	if s.blind {
		h.n = s.index
	}
	return h, err
}

// runEnded records how a run on one element ended. After a failure the rest of the record is only checked.
func (h *holder) runEnded(s *sequence, r runResult) error {
	if r.message != "" {
		h.message, h.element = r.message, s.index
		s.quiet.Store(true)
	}
	if errors.Is(r.err, errEnough) {
		s.quiet.Store(true)
		return nil
	}
	return r.err
}

// elementAhead returns a function that runs the filter on an element in a lane.
func (e *engine) elementAhead(how style) func(any, *batchResult) bool {
	return func(v any, m *batchResult) bool {
		if m.first != nil || m.err != nil {
			return true
		}
		r := e.run(e.Each, v, func(v any) error { return m.add(e, v, how) })
		if m.err = r.err; r.message != "" {
			m.first = &Failure{Element: m.records, Message: r.message}
		}
		m.records++
		return true
	}
}

// merge adds the results of a lane.
func (h *holder) merge(s *sequence, m *batchResult) error {
	if err := m.each(h.text); err != nil {
		return err
	}
	rest := m.n - int64(len(m.ends))
	h.n += rest
	h.held.n += rest
	if h.e.Stream.Flows() {
		h.e.Results += rest
	}
	if m.first == nil {
		return m.err
	}
	s.index += m.first.Element
	return h.runEnded(s, runResult{m.first.Message, m.err})
}

// finish emits the held results at the end of a record; before is the number of results before it.
func (h *holder) finish(record, before int64, element bool) error {
	e, form := h.e, h.e.Stream.Form
	if h.figures != nil {
		return e.finishFold(h.figures, record)
	}
	var err error
	switch {
	case e.Stream.Flows():
	case form == plan.Flow || form == plan.Item:
		if !h.started && form == plan.Item {
			r := e.run(e.Each, nil, h.value)
			if r.err != nil {
				return r.err
			}
			h.message = r.message
		}
		err = h.held.each(e.row)
		e.Results += h.held.n - int64(len(h.held.ends))
	case h.message != "":
	case form == plan.Count:
		err = e.row(strconv.AppendInt(nil, h.n, 10))
	default:
		err = e.row(h.array())
	}
	if err == nil && h.message != "" {
		f := Failure{Record: record, Element: -1, Results: e.Results - before, Message: h.message}
		if element {
			f.Element = h.element
		}
		e.fail(f)
	}
	return err
}

// array returns the held results as a JSON array.
func (h *holder) array() []byte {
	b := make([]byte, 0, len(h.held.results)+len(h.held.ends)+2)
	b = append(b, '[')
	_ = h.held.each(func(text []byte) error {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, text...)
		return nil
	})
	return append(b, ']')
}
