package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// searchWorker searches one file at a time.
type searchWorker struct {
	*searcher
	ctx     context.Context
	file    tree.Opened
	small   smallFile
	records matchRecorder
	groups  groupCounts                 // of the file, with show=groups
	visit   func(linesearch.Line) error // nil: the lines are not wanted
}

func newWorker(ctx context.Context, s *searcher) *searchWorker {
	w := &searchWorker{searcher: s, ctx: ctx, records: matchRecorder{ctx: ctx, context: s.Context, multi: s.Multiline}}
	switch {
	case s.Pattern.Several:
	case s.Show == "" || s.Show == "matches":
		w.visit = w.records.addLine
	case s.Show == "groups":
		w.visit = func(l linesearch.Line) error { w.groups.addLine(s.all[0], l); return nil }
	}
	return w
}

// searchBatch searches the files of a batch and sends their records, chunk by chunk.
func (w *searchWorker) searchBatch(j *fileBatch) {
	defer close(j.chunks)
	w.records.to = j.chunks
	if j.documents > 1 {
		w.readAhead(j)
	}
	for i := range j.targets {
		t, r := &j.targets[i], &j.results[i]
		var err error
		panics.Into(&err, func() {
			for i := 0; i < len(w.all) && err == nil; i++ {
				err = w.searchFile(w.all[i], t, r)
			}
		})
		switch {
		case errors.Is(err, errBinary):
			r.status = binary
		case errors.As(err, new(noTextError)):
			r.status, r.err = noText, err
		case err != nil:
			r.status, r.err = failed, err
		}
		t.release()
		runtime.Gosched() // a small call does not wait until each of many searches has had its 10 ms
	}
	_ = w.records.flush() // it fails only if ctx has ended, and then the whole search does
}

// searchFile searches a file for one pattern, and adds what it finds to the result.
func (w *searchWorker) searchFile(m *linesearch.Matcher, t *target, r *fileResult) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	f, err := w.open(w.ctx, t)
	if err == nil {
		err = w.searchText(m, t, f, r)
	}
	if errors.Is(err, errPacked) {
		if f, err = w.openSource(w.ctx, t); err == nil {
			err = w.searchText(m, t, f, r)
		}
	}
	return err
}

// searchText searches an open text for one pattern and closes it.
func (w *searchWorker) searchText(m *linesearch.Matcher, t *target, f openedText, r *fileResult) error {
	defer func() { _ = f.Close() }()
	if f.src != nil {
		r.keptInPart = f.src.Observation != nil && f.src.Observation.Dropped > 0
		r.document = f.src.Document
	}
	w.records.beginFile(t, r.document)
	o := linesearch.Options{Before: w.Context, After: w.Context}
	if w.Show == "groups" {
		o.Window = maxSaved
	}
	if w.oneFile {
		w.fileSize.Store(f.size)
		// A decoded text may be longer than its file.
		o.Progress = func(done int64) { w.fileRead.Store(min(done, f.size)) }
	}
	mixed := r.stored == source.Mixed // for an earlier pattern
	totals, err := m.Scan(w.ctx, f.Reader, o, w.visit)
	if errors.Is(err, errPacked) { // nothing of it was searched: searchFor opens it again
		return err
	}
	r.groups, w.groups = w.groups, groupCounts{}
	r.matches += totals.Matches
	if w.Pattern.Several {
		r.counts = append(r.counts, totals.Matches)
	}
	r.short, r.letters, r.stored = r.short || totals.Short, r.letters || totals.Letters, f.stored
	if totals.Matches > 0 && f.src != nil {
		f.src.Use()
	}
	switch p := f.Reader.(type) {
	case *smallFile: // was read at once
		r.stored = p.stored
	case *io.SectionReader:
		r.shrunk = r.shrunk || t.entry.IsFile() && err == nil && !r.short && totals.Bytes < p.Size()
	default: // a decoded text has another size than its file: ask the file
		r.shrunk = r.shrunk || t.entry.IsFile() && f.src == nil && w.file.Shrunk()
	}
	if mixed || w.beyond && totals.Matches == 0 && f.mayBeMixed(r.stored) && !isUTF8(w.ctx, f.raw, f.size) {
		r.stored = source.Mixed
	}
	if f.src != nil && f.raw == nil { // it knows its sizes and damage now that it was read
		r.stored, r.caveat = f.src.Coding(), f.src.Caveat()
	}
	r.window, r.notUTF8 = w.records.window, w.records.notUTF8
	if e := w.records.endRecord(); err == nil {
		err = e
	}
	if err == nil && w.Show == "files" && r.matches > 0 {
		err = w.records.appendAndFlush(appendCount(nil, fileCount{t.name(), r.matches}))
	}
	return err
}

func jsonString[T []byte | string](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error says that invalid UTF-8 became U+FFFD
	return b
}

// appendText appends a line as a JSON string. JSON cannot hold invalid UTF-8: such bytes are written as \xe9.
func (r *matchRecorder) appendText(b, line []byte) []byte {
	quoted, err := jsontext.AppendQuote(b, line)
	if err == nil {
		return quoted
	}
	r.notUTF8 = true
	var legible []byte
	for at := runes.Invalid(line); at >= 0; at = runes.Invalid(line) {
		legible = fmt.Appendf(append(legible, line[:at]...), `\x%02x`, line[at])
		line = line[at+1:]
	}
	return jsonString(b, append(legible, line...))
}

func appendCount(b []byte, c fileCount) []byte {
	b = jsonString(append(b, `{"file":`...), c.name)
	b = strconv.AppendInt(append(b, `,"matches":`...), c.matches, 10)
	return append(b, "}\n"...)
}

// matchRecorder makes records of the lines of one file:
//
//	{"file":"a.go","line":12,"text":"…","before":["…"],"after":["…"]}
//
// with "end" for multiline, "place" in the text of a document (such as "page 3"), and "column" (byte of the line at
// which its first match starts, from 1, as grep -bo counts them) and "cut" where text is a window of the line around
// it. Each line is written once: lines between two near matches are "after" of the first, so that before, text and
// after of all records together are the output of grep -C.
type matchRecorder struct {
	ctx     context.Context
	to      chan<- []byte
	context int
	multi   bool

	target   *target
	document *source.Document // of the target
	head     []byte           // of each record: the file; empty until one is made
	buf      []byte           // whole records, and the one that is open
	before   []byte           // of the next match: quoted, with commas
	last     int64            // line at which the open record ends; 0: none is open
	afters   int              // of the open record

	window  *linesearch.Line // the first match that is cut, without its text
	notUTF8 bool             // a line is not UTF-8
}

// beginFile starts the records of another file; the last record must have been ended.
func (r *matchRecorder) beginFile(t *target, d *source.Document) {
	r.target, r.document, r.head, r.before, r.window, r.notUTF8 = t, d, r.head[:0], r.before[:0], nil, false
}

func (r *matchRecorder) addLine(l linesearch.Line) error {
	if l.Match {
		return r.addMatch(l)
	}
	if r.last > 0 && l.Number <= r.last+int64(r.context) {
		if r.afters == 0 {
			r.buf = append(r.buf, `,"after":[`...)
		} else {
			r.buf = append(r.buf, ',')
		}
		r.afters++
		r.buf = r.appendText(r.buf, l.Text)
		return nil
	}
	if len(r.before) > 0 {
		r.before = append(r.before, ',')
	}
	r.before = r.appendText(r.before, l.Text)
	return nil
}

func (r *matchRecorder) addMatch(l linesearch.Line) error {
	if err := r.endRecord(); err != nil {
		return err
	}
	if len(r.head) == 0 {
		r.head = append(jsonString(append(r.head, `{"file":`...), r.target.name()), `,"line":`...)
	}
	b := strconv.AppendInt(append(r.buf, r.head...), l.Number, 10)
	if r.multi {
		b = strconv.AppendInt(append(b, `,"end":`...), l.End, 10)
	}
	if r.document != nil {
		if place := r.document.PlaceOf(int(l.Number)); place != "" {
			b = jsonString(append(b, `,"place":`...), place)
		}
	}
	b = r.appendText(append(b, `,"text":`...), l.Text)
	if l.Cut() > 0 {
		if r.window == nil {
			r.window = &linesearch.Line{Number: l.Number, Offset: l.Offset, Size: l.Size, At: l.At}
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

// endRecord ends the open record.
func (r *matchRecorder) endRecord() error {
	if r.last == 0 {
		return nil
	}
	if r.afters > 0 {
		r.buf = append(r.buf, ']')
	}
	r.last = 0
	return r.appendAndFlush([]byte("}\n"))
}

// appendAndFlush appends b and sends the buffer once it has chunkSize bytes.
func (r *matchRecorder) appendAndFlush(b []byte) error {
	if r.buf = append(r.buf, b...); len(r.buf) < chunkSize {
		return nil
	}
	return r.flush()
}

// flush sends the buffer.
func (r *matchRecorder) flush() error {
	if len(r.buf) == 0 {
		return nil
	}
	b := r.buf
	r.buf = nil
	select {
	case r.to <- b:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
