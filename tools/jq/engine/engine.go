// Package engine runs a planned filter over a text, in this process or in a worker process, and returns rows.
//
// Goroutines ("lanes") decode batches of the text concurrently and run cheap filters on them; the results are emitted
// in the order of the text. Package plan decides how a filter runs. Package jq decides where it runs and how many rows
// are shown.
package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// Run runs the filter over the whole text. The error comes from the reader, from out or from ctx; errors of the filter
// and of the text are in the outcome.
func (j *Job) Run(ctx context.Context, r io.Reader, out Rows) (Outcome, error) {
	p, err := j.Prepare()
	if err != nil {
		return Outcome{Compile: err.Error()}, nil //nolint:nilerr // the outcome has it
	}
	return j.RunPlan(ctx, p, r, out)
}

// RunPlan is Run for a filter that was prepared before.
func (j *Job) RunPlan(ctx context.Context, p *plan.Plan, r io.Reader, out Rows) (Outcome, error) {
	e := &engine{Job: j, ctx: ctx, out: out, Plan: p}
	e.again, _ = r.(byPosition)
	var err error
	switch {
	case j.Text && j.Slurp:
		err = e.whole(r)
	case j.Text:
		err = e.lines(r)
	default:
		err = e.records(r)
	}
	if errors.Is(err, errHalted) || errors.Is(err, errBroken) {
		err = nil
	}
	return e.Outcome, err
}

// whole runs the filter on the text as one string.
func (e *engine) whole(r io.Reader) error {
	b, err := io.ReadAll(content.WithContext(e.ctx, r))
	if err != nil {
		return err
	}
	return e.record(decode.Valid(b))
}

// lines runs the filter on each line as a string, without its newline.
func (e *engine) lines(r io.Reader) error {
	b := bufio.NewReaderSize(content.WithContext(e.ctx, r), 64<<10)
	var at int64
	for {
		line, err := b.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) > 0 {
			at += int64(len(line))
			if err := e.record(decode.Valid(bytes.TrimSuffix(line, []byte{'\n'}))); err != nil {
				return err
			}
			e.out.Progress(at)
		}
		if err == io.EOF {
			return nil
		}
	}
}

// records runs the filter on each JSON value of the text.
func (e *engine) records(r io.Reader) error {
	w := decode.NewWindow(content.WithContext(e.ctx, r), e.windowSize(), 0, spareBuffers)
	s := &sequence{e: e, node: e.Reads}
	if e.Slurp && e.Fold != nil && !e.Whole {
		return e.fold(w)
	}
	all := []any{}
	if e.Slurp {
		s.node, s.blind = e.Reads.Element(), e.Reads.Empty()
		s.unit = func(v any) error {
			all = append(all, v)
			return nil
		}
	} else {
		s.unit, s.record = e.record, e.large
		if e.InElements() {
			s.elements = e.elements
		}
		if e.Bounded() {
			s.ahead, s.merge = e.recordAhead, e.merge
		}
	}
	if err := s.drive(w); err != nil || !e.Slurp {
		return err
	}
	return e.record(all)
}

// windowSize returns how many bytes are read at once: about the size of the text if it is known and small.
func (e *engine) windowSize() int {
	switch {
	case e.Window > 0:
		return e.Window
	case e.again != nil && e.again.Size() < decode.DefaultWindow:
		return int(max(e.again.Size(), 0)) + 1<<10
	}
	return decode.DefaultWindow
}

// recordAhead runs the filter on a record in a lane.
func (e *engine) recordAhead(v any, m *batchResult) bool {
	before := m.n
	f, err := e.runRecord(v, func(v any) error { return m.add(e, v, asRow) })
	if f != nil {
		f.Record, f.Results = m.records, m.n-before
		if m.failed++; m.first == nil {
			m.first = f
		}
	}
	m.records++
	m.err = err
	return true
}

// merge adds the results of a lane to those of the run.
func (e *engine) merge(m *batchResult) error {
	if err := m.each(e.row); err != nil {
		return err
	}
	e.Results += m.n - int64(len(m.ends))
	if m.first != nil {
		m.first.Record += e.Records
		e.fail(*m.first)
		e.Failed += m.failed - 1
	}
	e.Records += m.records
	return m.err
}

// large runs the filter on a record that does not fit the window; c is its first byte.
func (e *engine) large(w *decode.Window, c byte) error {
	record, before := e.Records, e.Results
	switch {
	case e.Stream == nil:
	case e.InElements() && c == '[':
		e.Records++
		h, err := e.runElements(w)
		if err != nil {
			return err
		}
		return h.finish(record, before, true)
	case c == e.Stream.Opens() && (!e.Stream.Flows() && e.Fold == nil || e.again != nil):
		return e.runStreamPath(w)
	}
	v, err := e.decodeLarge(w, c, e.Reads)
	if err != nil {
		return err
	}
	return e.record(v)
}

// elements runs the rest of the filter on each element of an array, by the slow decoder. As in jq, the first error ends
// the record, which is still read to its end.
func (e *engine) elements(d *decode.Decoder) error {
	if err := d.Bracket(); err != nil {
		return err
	}
	record, before := e.Records, e.Results
	e.Records++
	failed := false
	for i := int64(0); d.Kind() != ']'; i++ {
		reads := e.EachReads
		if failed {
			reads = &decode.Projection{}
		}
		v, err := e.decodeComplete(d, reads)
		if err != nil {
			return decode.Unexpected(err)
		}
		if failed {
			continue
		}
		r := e.run(e.Each, v, e.result)
		if r.message != "" {
			failed = true
			e.fail(Failure{Record: record, Element: i, Results: e.Results - before, Message: r.message})
		}
		if r.err != nil {
			return r.err
		}
	}
	return d.Bracket()
}
