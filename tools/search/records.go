package search

import (
	"context"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/lines"
	"github.com/mcp-funnel/mcp-funnel/internal/panics"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
)

// worker searches one file at a time.
type worker struct {
	*searcher
	ctx     context.Context
	file    tree.Opened
	small   small
	records recorder
	visit   func(lines.Line) error // nil: the lines are not wanted
}

func newWorker(ctx context.Context, s *searcher) *worker {
	w := &worker{searcher: s, ctx: ctx, records: recorder{ctx: ctx, context: s.Context, multi: s.Multiline}}
	if s.Show == "" || s.Show == "matches" {
		w.visit = w.records.line
	}
	return w
}

// search searches the files of a job and sends their records, chunk by chunk.
func (w *worker) search(j *job) {
	defer close(j.chunks)
	w.records.to = j.chunks
	for i := range j.targets {
		t, r := &j.targets[i], &j.results[i]
		var err error
		panics.Into(&err, func() { err = w.searchOne(t, r) })
		switch {
		case errors.Is(err, errBinary):
			r.status = binary
		case err != nil:
			r.status, r.err = failed, err
		}
		t.release()
	}
	_ = w.records.flush() // it fails only with ctx, which ends all
}

func (w *worker) searchOne(t *target, r *result) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	f, err := w.open(w.ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r.part = f.part

	w.records.begin(t)
	totals, err := w.m.Scan(w.ctx, f.Reader, lines.Options{Before: w.Context, After: w.Context}, w.visit)
	r.matches, r.short, r.stored = totals.Matches, totals.Short, f.stored
	switch p := f.Reader.(type) {
	case *small: // was read at once
		r.stored = p.stored
	case *peeked:
		r.shrunk = err == nil && !r.short && totals.Bytes < p.size
	default: // what was looked at is not what the file holds, but made of it
		r.shrunk = t.id == "" && w.file.Shrunk()
	}
	r.window, r.odd = w.records.window, w.records.odd
	if e := w.records.close(); err == nil {
		err = e
	}
	if err == nil && w.Show == "files" && r.matches > 0 {
		err = w.records.add(appendCount(nil, count{t.name(), r.matches}))
	}
	return err
}

func jsonString[T []byte | string](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error says that invalid UTF-8 became U+FFFD
	return b
}

// text quotes a line. JSON holds no bytes that are not UTF-8: they stand as they are shown elsewhere, \xe9.
func (r *recorder) text(b, line []byte) []byte {
	quoted, err := jsontext.AppendQuote(b, line)
	if err == nil {
		return quoted
	}
	r.odd = true
	var legible []byte
	for len(line) > 0 {
		c, n := utf8.DecodeRune(line)
		if c == utf8.RuneError && n == 1 {
			legible = append(legible, content.Visible(string(line[:1]), false)...)
		} else {
			legible = append(legible, line[:n]...)
		}
		line = line[n:]
	}
	return jsonString(b, legible)
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
// with "end" for multiline, and "column" (byte of the line at which its first match starts, from 1, as grep -bo counts them)
// and "cut" where text is a window of the line around it.
// A line stands once: what lies between two near matches is after the first, so that before, text and after of
// all records are what grep -C shows.
type recorder struct {
	ctx     context.Context
	to      chan<- []byte
	context int
	multi   bool

	target *target
	head   []byte // of each record: the file; empty until one is made
	buf    []byte // whole records, and the one that is open
	before []byte // of the next match: quoted, with commas
	last   int64  // line at which the open record ends; 0: none is open
	afters int    // of the open record

	window *lines.Line // the first match that is cut, without its text
	odd    bool        // a line is not UTF-8
}

// begin goes on to another file, the records of the last being closed.
func (r *recorder) begin(t *target) {
	r.target, r.head, r.before, r.window, r.odd = t, r.head[:0], r.before[:0], nil, false
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
		r.buf = r.text(r.buf, l.Text)
		return nil
	}
	if len(r.before) > 0 {
		r.before = append(r.before, ',')
	}
	r.before = r.text(r.before, l.Text)
	return nil
}

func (r *recorder) match(l lines.Line) error {
	if err := r.close(); err != nil {
		return err
	}
	if len(r.head) == 0 {
		r.head = append(jsonString(append(r.head, `{"file":`...), r.target.name()), `,"line":`...)
	}
	b := strconv.AppendInt(append(r.buf, r.head...), l.Number, 10)
	if r.multi {
		b = strconv.AppendInt(append(b, `,"end":`...), l.End, 10)
	}
	b = r.text(append(b, `,"text":`...), l.Text)
	if l.Cut() > 0 {
		if r.window == nil {
			r.window = &lines.Line{Number: l.Number, Offset: l.Offset, Size: l.Size, At: l.At}
		}
		b = strconv.AppendInt(append(b, `,"column":`...), l.Column, 10)
		b = append(b, `,"cut":true`...)
	}
	if len(r.before) > 0 {
		b = append(append(append(b, `,"before":[`...), r.before...), ']')
		r.before = r.before[:0]
	}
	r.buf, r.last, r.afters = b, l.End, 0
	return nil
}

// close ends the open record.
func (r *recorder) close() error {
	if r.last == 0 {
		return nil
	}
	if r.afters > 0 {
		r.buf = append(r.buf, ']')
	}
	r.last = 0
	return r.add([]byte("}\n"))
}

// add ends a record, and sends what there is once it is worth it.
func (r *recorder) add(b []byte) error {
	if r.buf = append(r.buf, b...); len(r.buf) < chunkSize {
		return nil
	}
	return r.flush()
}

// flush sends what there is.
func (r *recorder) flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	b := r.buf
	r.buf = nil
	return r.send(b)
}

func (r *recorder) send(b []byte) error {
	select {
	case r.to <- b:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
