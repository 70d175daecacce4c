package jq

import (
	"bytes"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// give has a batch worked on.
func (s *sequence) give(w *view, b *batch) error {
	b.first, s.begun = !s.begun, true
	if s.todo == nil {
		if b.last || b.open {
			s.work(&s.e.quick, b)
			return s.take(b)
		}
		s.start(w)
	}
	b.done = make(chan struct{})
	s.under.Add(1)
	s.todo <- b
	s.order <- b
	return nil
}

// start starts the lanes, and the one that hands on.
func (s *sequence) start(w *view) {
	s.todo, s.order = make(chan *batch), make(chan *batch, lanes)
	for range lanes {
		s.running.Go(func() {
			q := new(quick)
			for b := range s.todo {
				panics.Into(&b.defect, func() { s.work(q, b) })
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
					panics.Into(&s.err, func() { s.err = s.take(b) })
				}
				if s.err != nil {
					s.quiet.Store(true)
					s.stop.Store(true)
				}
			}
			w.give(b.text)
			s.under.Done()
		}
	})
}

// work is what a lane does with a batch.
func (s *sequence) work(q *quick, b *batch) {
	through := sifting{sieve: s.sieve}
	q.lends = s.ahead != nil // what is written need not be held
	b.wrong = s.decode(q, b, &through, func(v any, size int) bool {
		switch {
		case s.ahead == nil:
			b.values = append(b.values, v)
		case size > aheadMost || b.made.full():
			return false
		default:
			s.ahead(v, &b.made)
			q.takeBack()
		}
		return true
	})
	q.takeBack()
	q.lends = false
}

// decode goes through a batch from where it was left. It stops before a value
// that is refused, which is told, and before one that is not taken.
func (s *sequence) decode(q *quick, b *batch, through *sifting, take func(v any, size int) bool) (refused bool) {
	q.reset(b.text, s.node == nil && s.sieve == nil && !s.blind, s.e.twice.Load())
	q.i = b.next
	due := !b.first || b.next > 0 // a value, after a comma
	for {
		if q.space(); q.i == len(b.text) {
			return s.array && (b.open || b.last && due)
		}
		start := q.i
		var v any
		ok, dropped := true, false
		blind := s.blind || s.quiet.Load()
		if blind {
			ok = q.skip(0)
		} else if dropped = through.drops(q); !dropped {
			v, ok = q.value(s.node, 0)
		}
		size := q.i - start
		if !ok || !s.separated(q, b) {
			return true
		}
		switch {
		case dropped:
			b.made.records++
			q.takeBack()
		case !blind && !take(v, size):
			return false
		}
		b.n++
		due, b.next = true, q.i
		if b.last && b.text[q.i-1] != ',' {
			return false
		}
	}
}

// separated moves over what stands between two values.
func (s *sequence) separated(q *quick, b *batch) bool {
	if !s.array { // what follows without a space is rare
		if q.i == len(b.text) {
			b.bare = b.open && classes[b.text[q.i-1]] == plainByte // a number or literal
			return true
		}
		return classes[b.text[q.i]] == spaceByte
	}
	c := q.space()
	if q.i == len(b.text) {
		return b.last
	}
	q.i++
	return c == ','
}

// take hands on what a lane made of a batch, and does what it left.
func (s *sequence) take(b *batch) error {
	before := s.index
	switch {
	case s.quiet.Load() || s.blind:
	case s.ahead != nil:
		if err := s.merge(&b.made); err != nil {
			return err
		}
	default:
		for _, v := range b.values {
			if err := s.hand(v); err != nil {
				return err
			}
		}
	}
	s.index = before + b.n
	if !b.wrong && b.next < len(b.text) {
		var failed error
		b.wrong = s.decode(&s.e.quick, b, &sifting{}, func(v any, _ int) bool {
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
		if err := s.slowly(b); err != nil {
			return err
		}
	}
	s.e.Open = s.e.Open || b.bare
	s.e.out.progress(b.at + int64(len(b.text)))
	return nil
}

// slowly takes the rest of a batch by the decoder that knows all of JSON, and says what is wrong with what is not.
func (s *sequence) slowly(b *batch) error {
	text := b.text[b.next:]
	if b.last {
		text = append(text[:len(text):len(text)], ']')
	}
	if s.array {
		f := &s.e.spine[len(s.e.spine)-1]
		f.n, f.comma = s.index, b.at+int64(b.next)-1
	}
	d := s.e.decoder(beforeValue, bytes.NewReader(text), b.at+int64(b.next))
	defer s.e.told(d)
	for first := true; ; first = false {
		rest := text[d.used():]
		switch {
		case !s.array || b.open:
		case b.last && d.kind() == ']':
			return nil
		case !b.last && !first && len(bytes.TrimSpace(rest)) == 1: // the comma before the next batch
			return nil
		}
		if s.elements != nil && d.kind() == '[' {
			if err := s.elements(d); err != nil {
				return s.e.syntax(d, err)
			}
			s.index++
			continue
		}
		v, err := s.e.part(d, s.node, s.blind || s.quiet.Load())
		if !s.array && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.e.syntax(d, err)
		}
		if err := s.hand(v); err != nil {
			return err
		}
	}
}
