package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

type engine struct {
	*Job
	*plan.Plan
	ctx context.Context
	out Rows

	d        *decode.Decoder
	again    byPosition // the text; nil if it cannot be read twice
	reported int64      // offset of the last progress
	Outcome
}

// byPosition is a text that can be read twice.
type byPosition interface {
	io.ReaderAt
	Size() int64
}

// errHalted ends a run without an error: the filter called halt.
var errHalted = errors.New("halted")

// runResult says how a run of a filter on one value ended.
type runResult struct {
	message string // gojq's error message if the filter failed
	err     error  // the run ends with this error
}

// run calls emit with each result of a filter on v.
func (e *engine) run(f *gojq.Code, v any, emit func(any) error) (r runResult) {
	defer func() {
		if p := recover(); p != nil { // a panic of gojq must not end more than this run
			r = runResult{message: decode.Clip(fmt.Sprint("internal error of the filter's interpreter: ", p))}
		}
	}()
	results := f.RunWithContext(e.ctx, v, e.Values...)
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
	if e.send != nil {
		return e.send(v)
	}
	before := e.Results
	r := e.run(e.Code, v, e.result)
	e.endRecord(before, Failure{Record: e.Records, Element: -1, Message: r.message})
	return r.err
}

// endRecord counts a record, and its failure if that has a message; before is the number of results before the record.
func (e *engine) endRecord(before int64, f Failure) {
	e.Records++
	if f.Message == "" {
		return
	}
	f.Results = e.Results - before
	if e.Failed++; e.First == nil {
		e.First = &f
	}
}

// wanted reports whether the caller wants the text of the next result.
func (e *engine) wanted() bool {
	if e.Limit > 0 && e.Results >= e.Offset+e.Limit || !e.out.Wanted() {
		return false
	}
	return e.Results >= e.Offset
}

// result encodes a result and passes it to the caller of the run, or only counts it.
func (e *engine) result(v any) error {
	if !e.wanted() {
		if e.Results++; e.Most > 0 && e.Results > e.Most {
			e.Uncounted = true
			return errHalted
		}
		return nil
	}
	b, err := e.encode(v, e.Raw)
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
	return e.out.Part(b, true)
}

// encode returns a result as JSON; with raw, a string without its quotes.
func (e *engine) encode(v any, raw bool) ([]byte, error) {
	if s, ok := v.(string); ok && raw {
		return []byte(s), nil
	}
	return gojq.Marshal(v)
}
