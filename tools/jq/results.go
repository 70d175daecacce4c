package jq

import (
	"errors"
	"strconv"

	"github.com/itchyny/gojq"
)

// madeMost is how much a lane keeps of results before the rest waits for its turn, in bytes.
const madeMost = 1 << 20

// made is what a lane made of the values of a batch.
type made struct {
	results []byte // texts, one after the other
	ends    []int  // where each ends
	n       int64  // results, also those whose text was not wanted

	records int64 // the filter was run on
	failed  int64
	first   *failure // its record counts from the batch
	err     error    // of the context
}

func (m *made) full() bool { return len(m.results) > madeMost || m.err != nil }

// add takes a result.
func (m *made) add(e *engine, v any, how style) error {
	m.n++
	if how == unwritten || how != asJSON && e.full.Load() {
		return nil
	}
	b, err := e.write(v, how)
	m.results = append(m.results, b...)
	m.ends = append(m.ends, len(m.results))
	return err
}

// each calls f with each text.
func (m *made) each(f func([]byte) error) error {
	start := 0
	for _, end := range m.ends {
		if err := f(m.results[start:end:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// style is how a result is written.
type style int

const (
	asRow     style = iota // strings as they are, where that is asked for
	asJSON                 // a part of an array
	unwritten              // only counted
)

func (e *engine) write(v any, how style) ([]byte, error) {
	if s, ok := v.(string); ok && e.Raw && how == asRow {
		return []byte(s), nil
	}
	return gojq.Marshal(v)
}

// errEnough: as many results as are wanted of a record.
var errEnough = errors.New("enough")

// holder takes the results of a filter that runs element by element.
type holder struct {
	e    *engine
	p    *plan
	how  style
	made made // held until the record is known to be whole
	n    int64
	ran  bool // on any element

	message string // why the filter failed
	element int64  // on which
}

func (e *engine) holder() *holder {
	h := &holder{e: e, p: e.plan}
	switch e.plan.form {
	case gather:
		h.how = asJSON
	case count:
		h.how = unwritten
	}
	return h
}

// flows says that results go out as they come.
func (p *plan) flows() bool { return p.form == flow && p.most < 0 }

// value takes a result, text one that was written by a lane.
func (h *holder) value(v any) error {
	h.n++
	var err error
	if h.p.flows() {
		err = h.e.result(v)
	} else {
		err = h.made.add(h.e, v, h.how)
	}
	return h.enough(err)
}

func (h *holder) text(b []byte) error {
	h.n++
	var err error
	if h.p.flows() {
		err = h.e.row(b)
	} else {
		h.made.n++
		h.made.results = append(h.made.results, b...)
		h.made.ends = append(h.made.ends, len(h.made.results))
	}
	return h.enough(err)
}

func (h *holder) enough(err error) error {
	if err == nil && h.p.most >= 0 && h.n >= h.p.most {
		return errEnough
	}
	return err
}

// stream runs the filter on the elements of the array that comes next.
func (e *engine) stream(w *view) (*holder, error) {
	h, p := e.holder(), e.plan
	plain := p.from == 0 && p.to < 0
	s := &sequence{e: e, array: true, node: e.eachReads, blind: plain && p.form == count && p.each == nil}
	s.unit = func(v any) error {
		if s.index < p.from {
			return nil
		}
		if p.to >= 0 && s.index >= p.to {
			s.quiet.Store(true)
			return nil
		}
		h.ran = true
		return h.over(s, e.run(e.each, v, h.value))
	}
	if plain && p.most < 0 && e.eachCheap {
		s.ahead, s.sieve = e.elementAhead(h.how), e.eachSieve
		s.merge = func(m *made) error { return h.merge(s, m) }
	}
	err := e.inside(w, frame{array: true}, func() error { return s.drive(w) })
	if s.blind {
		h.n = s.index
	}
	return h, err
}

// ran is how a run of a filter on one value ended.
type ran struct {
	message string // gojq's, where it failed
	err     error
}

// over takes the end of a run: a failure ends the record.
func (h *holder) over(s *sequence, r ran) error {
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

func (e *engine) elementAhead(how style) func(any, *made) {
	return func(v any, m *made) {
		if m.first != nil || m.err != nil {
			return
		}
		r := e.run(e.each, v, func(v any) error { return m.add(e, v, how) })
		if m.err = r.err; r.message != "" {
			m.first = &failure{Element: m.records, Message: r.message}
		}
		m.records++
	}
}

func (h *holder) merge(s *sequence, m *made) error {
	err := m.each(h.text)
	if err == nil {
		rest := m.n - int64(len(m.ends))
		h.n += rest
		h.made.n += rest
		if h.p.flows() {
			h.e.Results += rest
		}
		if m.first != nil {
			s.index += m.first.Element
			err = h.over(s, ran{m.first.Message, m.err})
		} else {
			err = m.err
		}
	} else if errors.Is(err, errEnough) {
		err = h.over(s, ran{err: err})
	}
	return err
}

// finish gives what was held, at the end of a record that began with so many results.
func (h *holder) finish(record, before int64, element bool) error {
	e := h.e
	var err error
	switch {
	case h.p.flows():
	case h.p.form == flow || h.p.form == item:
		if !h.ran && h.p.form == item {
			h.message = ""
			r := e.run(e.each, nil, h.value)
			if r.err != nil {
				return r.err
			}
			h.message = r.message
		}
		err = h.made.each(e.row)
		e.Results += h.made.n - int64(len(h.made.ends))
	case h.message != "":
	case h.p.form == count:
		err = e.row(strconv.AppendInt(nil, h.n, 10))
	default:
		err = e.row(h.array())
	}
	if err == nil && h.message != "" {
		f := failure{Record: record, Element: -1, Results: e.Results - before, Message: h.message}
		if element {
			f.Element = h.element
		}
		e.fail(f)
	}
	return err
}

// array is the text of all results.
func (h *holder) array() []byte {
	b := make([]byte, 0, len(h.made.results)+len(h.made.ends)+2)
	b = append(b, '[')
	_ = h.made.each(func(text []byte) error {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, text...)
		return nil
	})
	return append(b, ']')
}
