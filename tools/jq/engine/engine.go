// Package engine runs a planned filter over a text, in this process or in a worker process, and returns rows.
//
// Package plan decides how a filter runs. Package jq decides where it runs and how many rows are shown.
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
	if j.Filters != nil {
		return j.runGroup(ctx, r, out)
	}
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

// records runs the filter on each JSON value of the text, or on the array of all.
func (e *engine) records(r io.Reader) (err error) {
	e.d = decode.NewDecoder(content.WithContext(e.ctx, r))
	defer func() { e.noteDuplicate(e.d.Twice) }()
	if e.Slurp {
		return e.slurp()
	}
	for err == nil {
		err = e.nextRecord()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// slurp runs the filter on the array of all records.
func (e *engine) slurp() error {
	if e.Stream != nil && !e.Whole {
		err := e.elements(e.d, false)
		if errors.Is(err, errUnsure) {
			e.Unsure = true
			return nil
		}
		return err
	}
	all := []any{}
	for {
		v, err := e.decode(e.d, e.Reads.Element())
		if errors.Is(err, io.EOF) {
			return e.record(all)
		}
		if err != nil {
			return e.syntax(e.d, err)
		}
		all = append(all, v)
	}
}

// nextRecord runs the filter on the next record. The error is io.EOF if there is none.
func (e *engine) nextRecord() error {
	s, kind := e.Stream, byte(e.d.Kind())
	stream := s != nil && kind == s.Opens()
	if stream && s.Once() {
		return e.elements(e.d, true)
	}
	start := e.d.Offset()
	if stream && e.again != nil {
		e.d.Limit = start + e.largest()
	}
	v, err := e.decode(e.d, e.Reads)
	e.d.Limit = 0
	switch {
	case errors.Is(err, decode.ErrTooLarge):
		err = e.large(start)
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		err = e.syntax(e.d, err)
	default:
		err = e.record(v)
	}
	return err
}

// large runs the filter on a record at an offset that is read more than once: from its beginning to find the array, and
// then from the array on.
func (e *engine) large(start int64) error {
	e.noteDuplicate(e.d.Twice)
	e.d = e.decoderAt(start)
	at, d := start, e.d
	if e.Stream.Form == plan.Flow || !e.Stream.Whole() {
		var err error
		if at, err = d.Find(e.Stream.Path); err != nil {
			return e.syntax(d, err)
		}
		e.noteDuplicate(d.Twice)
		d = e.decoderAt(max(at, start))
	}
	if at >= 0 {
		err := e.elements(d, true)
		e.noteDuplicate(d.Twice)
		if !errors.Is(err, errUnsure) {
			return err
		}
	}
	e.d = e.decoderAt(start)
	v, err := e.decode(e.d, e.Reads)
	if err != nil {
		return e.syntax(e.d, err)
	}
	return e.record(v)
}

// maxWhole is how many bytes of a record are decoded before it is read element by element.
const maxWhole = 1 << 20

func (e *engine) largest() int64 {
	if e.Largest > 0 {
		return e.Largest
	}
	return maxWhole
}

// decoderAt returns a decoder of the text from an offset on.
func (e *engine) decoderAt(at int64) *decode.Decoder {
	rest := io.NewSectionReader(e.again, at, e.again.Size()-at)
	return decode.NewDecoderAt(content.WithContext(e.ctx, rest), at)
}

// decode decodes the parts that n reads of a record, or of a value inside a record. A number or literal at the end of
// the text may be cut off: a record is accepted, as in jq, and the outcome mentions it; inside a record it is an error.
// The error is io.EOF after the last record.
func (e *engine) decode(d *decode.Decoder, n *decode.Projection) (any, error) {
	kind := d.Kind()
	v, err := d.Next(n)
	if err == nil && d.OpenEnded(kind) {
		if !d.Inside() {
			e.Open = true
		} else {
			err = decode.Unexpected(d.Skip())
		}
	}
	if at := d.Offset(); at-e.reported > 64<<10 {
		e.reported = at
		e.out.Progress(at)
	}
	return v, err
}

// errBroken means that the text is not JSON; the outcome has the place.
var errBroken = errors.New("broken")

// syntax records a syntax error in the outcome and returns errBroken; an error of the reader is returned as it is.
func (e *engine) syntax(d *decode.Decoder, err error) error {
	b := d.Broken(err)
	if b == nil {
		return err
	}
	e.Broken = b
	return errBroken
}

// noteDuplicate records the first duplicate key of a run; nil is none.
func (e *engine) noteDuplicate(d *decode.Duplicate) {
	if e.Twice == nil {
		e.Twice = d
	}
}
