package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

type engine struct {
	*Job
	*plan.Plan
	ctx context.Context
	out Rows

	again  byPosition  // the text; nil if it cannot be read twice
	path   []container // the open arrays and objects that do not fit the window
	fast   decode.FastDecoder
	merged []byte            // text of the batch whose cells a fold adds
	keys   map[string]string // cache that all slow decoders share
	twice  atomic.Bool       // a duplicate key was found
	full   atomic.Bool       // no more rows are wanted
	Outcome
}

// byPosition is a text that can be read twice.
type byPosition interface {
	io.ReaderAt
	Size() int64
}

// errHalted ends a run without an error: the filter called halt.
var errHalted = errors.New("halted")

// run calls emit with each result of a filter on v; a nil filter returns v itself. Lanes call it concurrently.
func (e *engine) run(f *plan.Filter, v any, emit func(any) error) (r runResult) {
	if f == nil {
		return runResult{err: emit(v)}
	}
	if f.Direct != nil {
		switch w, a := f.Direct(v); a {
		case plan.NoResult:
			return runResult{}
		case plan.OneResult:
			return runResult{err: emit(w)}
		}
	}
	defer func() {
		if p := recover(); p != nil { // a panic of gojq must not end more than this run
			r = runResult{message: decode.Clip(fmt.Sprint("internal error of the filter's interpreter: ", p))}
		}
	}()
	results := f.Code.RunWithContext(e.ctx, v, e.Values...)
	for {
		v, ok := results.Next()
		if !ok {
			return runResult{}
		}
		if failed, ok := v.(error); ok {
			if err := e.ctx.Err(); err != nil {
				return runResult{err: err}
			}
			var halt *gojq.HaltError
			if errors.As(failed, &halt) {
				if halt.Value() == nil {
					return runResult{err: errHalted}
				}
				return runResult{decode.Clip(failed.Error()), errHalted}
			}
			return runResult{message: decode.Clip(failed.Error())}
		}
		if err := emit(v); err != nil {
			return runResult{err: err}
		}
	}
}

// record runs the filter on one value.
func (e *engine) record(v any) error {
	before := e.Results
	f, err := e.runRecord(v, e.result)
	if f != nil {
		f.Record, f.Results = e.Records, e.Results-before
		e.fail(*f)
	}
	e.Records++
	return err
}

// runRecord runs the filter on one record, or on each of its elements, and returns where the filter failed.
func (e *engine) runRecord(v any, emit func(any) error) (*Failure, error) {
	a, ok := v.([]any)
	if !ok || !e.InElements() {
		r := e.run(e.Code, v, emit)
		if r.message == "" {
			return nil, r.err
		}
		return &Failure{Element: -1, Message: r.message}, r.err
	}
	for i, v := range a {
		r := e.run(e.Each, v, emit)
		if r.message != "" {
			return &Failure{Element: int64(i), Message: r.message}, r.err
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return nil, nil
}

// fail counts a record on which the filter failed, and stores the first one.
func (e *engine) fail(f Failure) {
	if e.Failed++; e.First == nil {
		e.First = &f
	}
}

// wanted reports whether the caller wants the text of the next result.
func (e *engine) wanted() bool {
	if e.Limit > 0 && e.Results >= e.Offset+e.Limit || !e.out.Wanted() {
		e.full.Store(true)
		return false
	}
	return e.Results >= e.Offset
}

// result encodes a result and passes it to the caller of the run, or only counts it.
func (e *engine) result(v any) error {
	if !e.wanted() {
		e.Results++
		return nil
	}
	b, err := e.write(v, asRow)
	if err != nil {
		return err
	}
	return e.row(b)
}

// row passes an encoded result to the caller of the run, or only counts it.
func (e *engine) row(b []byte) error {
	wanted := e.wanted()
	e.Results++
	if !wanted {
		return nil
	}
	return e.out.Row(b)
}

// batchResult holds the results of a filter that a lane ran ahead of its turn, on the values of a batch. The row "jq:
// 200 MB, streamable: select by two keys" of docs/SPEED.md needs it: with lanes that only decode it takes 1.5 times as
// long.
type batchResult struct {
	results []byte // encoded results, one after the other
	ends    []int  // index in results after each of them
	n       int64  // number of results, including those that are not encoded

	records int64    // values on which the filter ran
	failed  int64    // values on which it failed
	first   *Failure // the first failure; its record number starts at 0 in each batch
	err     error    // error of the context

	cells []any  // of a fold
	text  []byte // of the batch
	at    int    // index in the text of the value on which the filter runs, or of white space before it
}

// full reports whether the lane must stop.
func (m *batchResult) full() bool { return len(m.results) > maxBatchResult || m.err != nil }

// add counts a result, and encodes it if its text is wanted.
func (m *batchResult) add(e *engine, v any, how style) error {
	m.n++
	if how == unwritten || how != asJSON && e.full.Load() {
		return nil
	}
	b, err := e.write(v, how)
	m.append(b)
	return err
}

// append adds an encoded result.
func (m *batchResult) append(b []byte) {
	m.results = append(m.results, b...)
	m.ends = append(m.ends, len(m.results))
}

// each calls f with each encoded result.
func (m *batchResult) each(f func([]byte) error) error {
	start := 0
	for _, end := range m.ends {
		if err := f(m.results[start:end:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// maxBatchResult is how many bytes of results a lane holds. If there are more, the merging goroutine decodes the rest
// of the batch.
const maxBatchResult = 1 << 20

// style is how a result is written.
type style int

const (
	asRow     style = iota // JSON, or an unquoted string if the job is raw
	asJSON                 // JSON, as part of an array
	unwritten              // only counted
)

func (e *engine) write(v any, how style) ([]byte, error) {
	if s, ok := v.(string); ok && e.Raw && how == asRow {
		return []byte(s), nil
	}
	return gojq.Marshal(v)
}

// runResult says how a run of a filter on one value ended.
type runResult struct {
	message string // gojq's error message if the filter failed
	err     error  // the run ends with this error
}
