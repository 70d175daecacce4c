package engine

import (
	"bytes"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// dispatch sends a batch to the lanes.
func (s *sequence) dispatch(w *decode.Window, b *batch) error {
	b.first, s.begun = !s.begun, true
	if s.todo == nil {
		if b.Last || b.Open {
			s.decodeBatch(&s.e.fast, b)
			return s.mergeBatch(b)
		}
		s.start(w)
	}
	b.done = make(chan struct{})
	s.inFlight.Add(1)
	s.todo <- b
	s.order <- b
	return nil
}

// start starts the lanes and the merging goroutine.
func (s *sequence) start(w *decode.Window) {
	s.todo, s.order = make(chan *batch), make(chan *batch, decodeLanes)
	for range decodeLanes {
		s.running.Go(func() {
			q := new(decode.FastDecoder)
			for b := range s.todo {
				panics.Into(&b.defect, func() { s.decodeBatch(q, b) })
				close(b.done)
			}
		})
	}
	s.running.Go(func() {
		for b := range s.order {
			<-b.done
			if s.err == nil {
				s.err = b.defect
				if s.err == nil {
					panics.Into(&s.err, func() { s.err = s.mergeBatch(b) })
				}
				if s.err != nil {
					s.quiet.Store(true)
					s.stop.Store(true)
				}
			}
			w.Recycle(b.Text)
			s.inFlight.Done()
		}
	})
}

// decodeBatch decodes a batch in a lane, and runs the filter on the values if s.ahead is set.
func (s *sequence) decodeBatch(q *decode.FastDecoder, b *batch) {
	q.ReuseMaps = s.ahead != nil // then no value is needed after its run
	node := s.node
	if s.skips {
		node = &decode.Projection{}
	}
	b.wrong = s.decodeValues(q, b, node, func(v any, size int) bool {
		switch {
		case s.ahead == nil:
			b.values = append(b.values, v)
		case size > maxAhead || b.result.full():
			return false
		default:
			b.result.text, b.result.at = b.Text, b.next
			done := s.ahead(v, &b.result)
			q.ReclaimMaps()
			return done
		}
		return true
	})
	q.ReclaimMaps()
	q.ReuseMaps = false
}

// decodeValues decodes what node reads of the rest of a batch and passes each value, and its size in bytes, to visit.
// It stops before a value that the fast decoder refuses (then refused is true), and before one for which visit returns
// false.
func (s *sequence) decodeValues(
	q *decode.FastDecoder, b *batch, node *decode.Projection, visit func(v any, size int) bool,
) (refused bool) {
	q.Reset(b.Text, s.node == nil && !s.blind && !s.keeps, s.e.twice.Load())
	q.Pos = b.next
	due := !b.first || b.next > 0 // a value must follow the comma before
	for {
		if q.SkipSpace(); q.Pos == len(b.Text) {
			return s.array && (b.Open || b.Last && due)
		}
		start := q.Pos
		var v any
		var ok bool
		blind := s.blind || s.quiet.Load()
		if blind {
			ok = q.Skip(0)
		} else {
			v, ok = q.Value(node, 0)
		}
		size := q.Pos - start
		if !ok || !s.separated(q, b) {
			return true
		}
		if !blind && !visit(v, size) {
			return false
		}
		b.n++
		due, b.next = true, q.Pos
		if b.Last && b.Text[q.Pos-1] != ',' {
			return false
		}
	}
}

// separated skips the separator after a value. It returns false if there is none.
func (s *sequence) separated(q *decode.FastDecoder, b *batch) bool {
	if !s.array { // records without white space between them are rare: refuse them
		if q.Pos == len(b.Text) {
			b.bare = b.Open && decode.IsPlain(b.Text[q.Pos-1]) // a number or literal
			return true
		}
		return decode.IsSpace(b.Text[q.Pos])
	}
	c := q.SkipSpace()
	if q.Pos == len(b.Text) {
		return b.Last
	}
	q.Pos++
	return c == ','
}

// mergeBatch emits the values or results of a batch, and decodes the values that its lane has not decoded.
func (s *sequence) mergeBatch(b *batch) error {
	before := s.index
	switch {
	case s.quiet.Load() || s.blind:
	case s.ahead != nil:
		if err := s.merge(&b.result); err != nil {
			return err
		}
	default:
		for _, v := range b.values {
			if err := s.emit(v); err != nil {
				return err
			}
		}
	}
	s.index = before + b.n
	if !b.wrong && b.next < len(b.Text) {
		var failed error
		b.wrong = s.decodeValues(&s.e.fast, b, s.node, func(v any, _ int) bool {
			failed = s.unit(v)
			s.index++
			return failed == nil
		})
		if failed != nil {
			return failed
		}
		s.index = before + b.n
	}
	if b.wrong {
		if err := s.decodeSlowly(b); err != nil {
			return err
		}
	}
	s.e.Open = s.e.Open || b.bare
	s.e.out.Progress(b.At + int64(len(b.Text)))
	return nil
}

// decodeSlowly decodes the rest of a batch by the slow decoder, which words the error if the text is not JSON.
func (s *sequence) decodeSlowly(b *batch) error {
	text := b.Text[b.next:]
	if b.Last {
		text = append(text[:len(text):len(text)], ']')
	}
	if s.array {
		f := &s.e.path[len(s.e.path)-1]
		f.n, f.comma = s.index, b.At+int64(b.next)-1
	}
	d := s.e.decoder(beforeValue, bytes.NewReader(text), b.At+int64(b.next))
	defer func() { s.e.noteDuplicate(d.Twice) }()
	for first := true; ; first = false {
		rest := text[d.Used():]
		switch {
		case !s.array || b.Open:
		case b.Last && d.Kind() == ']':
			return nil
		case !b.Last && !first && len(bytes.TrimSpace(rest)) == 1: // the comma before the next batch
			return nil
		}
		if s.elements != nil && d.Kind() == '[' {
			if err := s.elements(d); err != nil {
				return s.e.syntax(d, err)
			}
			s.index++
			continue
		}
		v, err := s.e.decodeComplete(d, s.reads())
		if !s.array && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.e.syntax(d, err)
		}
		if err := s.emit(v); err != nil {
			return err
		}
	}
}
