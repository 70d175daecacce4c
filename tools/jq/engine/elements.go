package engine

import (
	"cmp"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// elements are the elements of an array, or all records of a text, which a filter reads one by one. It is a
// [gojq.Iter], on which gojq runs the filter in place of the array.
type elements struct {
	e     *engine
	d     *decode.Decoder
	array bool
	index int64 // of the next element
	ended bool  // there are no more
	err   error // why reading ended early
}

// Next returns the next element. It skips those before the range of the stream.
func (s *elements) Next() (any, bool) {
	of := s.e.Stream
	for s.index < of.From {
		if _, ok := s.read(&decode.Projection{}); !ok {
			return nil, false
		}
	}
	if of.To >= 0 && s.index >= of.To {
		return nil, false
	}
	return s.read(of.Reads)
}

// read decodes the parts of the next element that n reads.
func (s *elements) read(n *decode.Projection) (v any, ok bool) {
	if s.ended || s.array && s.d.Kind() == ']' {
		s.ended = true
		return nil, false
	}
	v, err := s.e.decode(s.d, n)
	switch {
	case err == nil:
		s.index++
		return v, true
	case !s.array && errors.Is(err, io.EOF):
	default:
		s.err = s.e.syntax(s.d, decode.Unexpected(err))
	}
	s.ended = true
	return nil, false
}

// close checks the rest of the array.
func (s *elements) close() error {
	for {
		if _, ok := s.read(&decode.Projection{}); !ok {
			break
		}
	}
	if s.err != nil || !s.array {
		return s.err
	}
	return s.d.Bracket()
}

// elements runs the filter on the elements of the array that comes next, or on all records. The error is errUnsure if
// the filter must run on the whole array; then there are no results.
func (e *engine) elements(d *decode.Decoder, array bool) error {
	s := &elements{e: e, d: d, array: array}
	if array {
		if err := d.Bracket(); err != nil {
			return e.syntax(d, err)
		}
	}
	of, before := e.Stream, e.Results
	now := array && of.Form == plan.Flow // results are emitted at once
	h, f := &held{e: e, gather: of.Form == plan.Gather}, newFigures(of.Tallies)
	emit := h.add
	switch {
	case of.Form == plan.Folded:
		emit = f.add
	case now:
		emit = e.result
	}
	r := e.run(of.Code, s, emit)
	failed := Failure{Record: e.Records, Element: -1, Message: r.message}
	if now && of.Once() {
		failed.Element = s.index - 1
	}
	if now {
		if e.endRecord(before, failed); r.err != nil {
			return r.err
		}
	}
	if err := s.close(); err != nil {
		return err
	}
	switch {
	case of.Form == plan.Folded:
		if r.message != "" || r.err != nil {
			return cmp.Or(e.ctx.Err(), errUnsure)
		}
		r = e.run(of.Final, f.values(), e.result)
		failed.Message = r.message
	case !now:
		if err := h.emit(r.message != "" || r.err != nil); err != nil {
			return err
		}
	}
	if !now {
		e.endRecord(before, failed)
	}
	return r.err
}

// held are encoded results that wait for the end of their record.
type held struct {
	e      *engine
	gather bool   // they are the elements of one result
	text   []byte // one after the other, each after a comma
	ends   []int  // index in text after each of them
}

func (h *held) add(v any) error {
	b, err := h.e.encode(v, h.e.Raw && !h.gather)
	h.text = append(append(h.text, ','), b...)
	h.ends = append(h.ends, len(h.text))
	return err
}

// emit passes the results on; an array that is not complete is none.
func (h *held) emit(incomplete bool) error {
	if h.gather {
		if incomplete {
			return nil
		}
		if len(h.text) == 0 {
			h.text = []byte{'['}
		}
		h.text[0] = '['
		return h.e.row(append(h.text, ']'))
	}
	start := 0
	for _, end := range h.ends {
		if err := h.e.row(h.text[start+1 : end : end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}
