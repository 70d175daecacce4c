package search

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/internal/lines"
)

// searchOne searches one file and sends its records, chunk by chunk.
func (s *searcher) searchOne(ctx context.Context, j *job) {
	defer close(j.chunks)
	if j.err = ctx.Err(); j.err != nil {
		j.status = failed
		return
	}
	f, err := s.open(ctx, j.target)
	switch {
	case errors.Is(err, errBinary):
		j.status = binary
		return
	case err != nil:
		j.status, j.err = failed, err
		return
	}
	defer func() { _ = f.Close() }()
	j.part = f.part

	w := &recorder{ctx: ctx, to: j.chunks, context: s.Context, multi: s.Multiline}
	w.head = append(jsonString([]byte(`{"file":`), j.target.name), `,"line":`...)
	o := lines.Options{Before: s.Context, After: s.Context}
	var visit func(lines.Line) error
	if s.Show == "" || s.Show == "matches" {
		visit = w.line
	}
	totals, err := s.m.Scan(ctx, f, o, visit)
	j.matches, j.short = totals.Matches, totals.Short
	j.window = w.window
	if e := w.end(); err == nil {
		err = e
	}
	if err == nil && s.Show == "files" && j.matches > 0 {
		err = w.send(appendCount(nil, count{j.target.name, j.matches}))
	}
	if err != nil {
		j.status, j.err = failed, err
	}
}

func jsonString[T []byte | string](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error says that invalid UTF-8 became U+FFFD
	return b
}

func appendCount(b []byte, c count) []byte {
	b = jsonString(append(b, `{"file":`...), c.name)
	b = strconv.AppendInt(append(b, `,"matches":`...), c.matches, 10)
	return append(b, "}\n"...)
}

// recorder makes records of the lines of one file:
//
//	{"file":"a.go","line":12,"text":"…","before":["…"],"after":["…"]}
//
// with "end" for multiline, and "column" (byte of the line at which text starts, from 1) and "cut" where text is a window.
// A line stands once: what lies between two near matches is after the first, so that before, text and after of
// all records are what grep -C shows.
type recorder struct {
	ctx     context.Context
	to      chan<- []byte
	context int
	multi   bool

	head   []byte // of each record: the file
	buf    []byte // whole records, and the one that is open
	before []byte // of the next match: quoted, with commas
	last   int64  // line at which the open record ends; 0: none is open
	afters int    // of the open record

	window *lines.Line // the first match that is cut, without its text
}

func (r *recorder) line(l lines.Line) error {
	if l.Match {
		return r.match(l)
	}
	if r.last > 0 && l.Number <= r.last+int64(r.context) {
		if r.afters == 0 {
			r.buf = append(r.buf, `,"after":[`...)
		} else {
			r.buf = append(r.buf, ',')
		}
		r.afters++
		r.buf = jsonString(r.buf, l.Text)
		return nil
	}
	if len(r.before) > 0 {
		r.before = append(r.before, ',')
	}
	r.before = jsonString(r.before, l.Text)
	return nil
}

func (r *recorder) match(l lines.Line) error {
	if err := r.close(); err != nil {
		return err
	}
	b := strconv.AppendInt(append(r.buf, r.head...), l.Number, 10)
	if r.multi {
		b = strconv.AppendInt(append(b, `,"end":`...), l.End, 10)
	}
	b = jsonString(append(b, `,"text":`...), l.Text)
	if l.Cut() > 0 {
		if r.window == nil {
			r.window = &lines.Line{Number: l.Number, Offset: l.Offset, Size: l.Size, At: l.At}
		}
		b = strconv.AppendInt(append(b, `,"column":`...), l.At+1, 10)
		b = append(b, `,"cut":true`...)
	}
	if len(r.before) > 0 {
		b = append(append(append(b, `,"before":[`...), r.before...), ']')
		r.before = r.before[:0]
	}
	r.buf, r.last, r.afters = b, l.End, 0
	return nil
}

// close ends the open record, and sends what there is once it is worth it.
func (r *recorder) close() error {
	if r.last == 0 {
		return nil
	}
	if r.afters > 0 {
		r.buf = append(r.buf, ']')
	}
	r.buf = append(r.buf, "}\n"...)
	r.last = 0
	if len(r.buf) < chunkSize {
		return nil
	}
	b := r.buf
	r.buf = nil
	return r.send(b)
}

func (r *recorder) end() error {
	if err := r.close(); err != nil || len(r.buf) == 0 {
		return err
	}
	return r.send(r.buf)
}

func (r *recorder) send(b []byte) error {
	select {
	case r.to <- b:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
