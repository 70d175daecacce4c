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
	p       *plan.Stream
	how     style
	held    batchResult // held until the record is known to be whole
	n       int64
	started bool // on any element

	message string // why the filter failed
	element int64  // on which
}

func (e *engine) holder() *holder {
	h := &holder{e: e, p: e.Stream}
	switch e.Stream.Form {
	case plan.Gather:
		h.how = asJSON
	case plan.Count:
		h.how = unwritten
	}
	return h
}

// value adds a result; text adds one that a lane has encoded.
func (h *holder) value(v any) error {
	h.n++
	var err error
	if h.p.Flows() {
		err = h.e.result(v)
	} else {
		err = h.held.add(h.e, v, h.how)
	}
	return h.enough(err)
}

func (h *holder) text(b []byte) error {
	h.n++
	var err error
	if h.p.Flows() {
		err = h.e.row(b)
	} else {
		h.held.n++
		h.held.results = append(h.held.results, b...)
		h.held.ends = append(h.held.ends, len(h.held.results))
	}
	return h.enough(err)
}

func (h *holder) enough(err error) error {
	if err == nil && h.p.Most >= 0 && h.n >= h.p.Most {
		return errEnough
	}
	return err
}

// runElements runs the filter on the elements of the array that comes next.
func (e *engine) runElements(w *decode.Window) (*holder, error) {
	h, p := e.holder(), e.Stream
	plain := p.From == 0 && p.To < 0
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
	err := e.within(w, frame{array: true}, func() error { return s.drive(w) })
	if s.blind {
		h.n = s.index
	}
	return h, err
}

// runEnded records how a run on one element ended: a failure ends the record.
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

func (e *engine) elementAhead(how style) func(any, *batchResult) {
	return func(v any, m *batchResult) {
		if m.first != nil || m.err != nil {
			return
		}
		r := e.run(e.Each, v, func(v any) error { return m.add(e, v, how) })
		if m.err = r.err; r.message != "" {
			m.first = &Failure{Element: m.records, Message: r.message}
		}
		m.records++
	}
}

func (h *holder) merge(s *sequence, m *batchResult) error {
	err := m.each(h.text)
	if err == nil {
		rest := m.n - int64(len(m.ends))
		h.n += rest
		h.held.n += rest
		if h.p.Flows() {
			h.e.Results += rest
		}
		if m.first != nil {
			s.index += m.first.Element
			err = h.runEnded(s, runResult{m.first.Message, m.err})
		} else {
			err = m.err
		}
	} else if errors.Is(err, errEnough) {
		err = h.runEnded(s, runResult{err: err})
	}
	return err
}

// finish emits the held results at the end of a record; before is the number of results before it.
func (h *holder) finish(record, before int64, element bool) error {
	e := h.e
	var err error
	switch {
	case h.p.Flows():
	case h.p.Form == plan.Flow || h.p.Form == plan.Item:
		if !h.started && h.p.Form == plan.Item {
			h.message = ""
			r := e.run(e.Each, nil, h.value)
			if r.err != nil {
				return r.err
			}
			h.message = r.message
		}
		err = h.held.each(e.row)
		e.Results += h.held.n - int64(len(h.held.ends))
	case h.message != "":
	case h.p.Form == plan.Count:
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

// array is the JSON array of all results.
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
