// Package plan reads a filter and decides how it runs.
//
// It parses and compiles a filter by gojq, and finds out which parts of a record it reads, whether it can run on one
// array element after the other, and whether it is cheap enough to run as a Go function. It reads no source and runs
// no filter.
package plan

import (
	"encoding/json"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// Plan is how a filter runs: the part of a run that depends only on the filter and its args. It is read-only.
type Plan struct {
	Code   *Filter
	Values []any // of the variables

	// The rest is of JSON, not of text.

	Reads *decode.Projection // by code

	Stream    *Stream // nil: the filter needs a record whole
	Each      *Filter // of one element; nil: the element itself
	EachReads *decode.Projection
}

// New parses and compiles a filter, and decides how it runs; name is the source's.
func New(filter string, args map[string]json.RawMessage, name string, slurp, text bool) (*Plan, error) {
	p, err := parse(filter, args, name)
	if err != nil {
		return nil, err
	}
	return p.prepare(slurp, text)
}

func (p *program) prepare(slurp, text bool) (r *Plan, err error) {
	r = &Plan{Values: p.values}
	if r.Code, err = p.ready(p.query); err != nil || text {
		return r, err
	}
	r.Reads = readsOf(p.query, false)
	if r.Stream = streamOf(p); r.Stream == nil || slurp {
		r.Stream = nil
		return r, nil
	}
	r.EachReads = readsOf(r.Stream.Each, r.Stream.Form == Count)
	if r.Stream.Each != nil {
		r.Each, err = p.ready(r.Stream.Each)
	}
	return r, err
}

// InElements says that an array is read element by element, whatever its size: the filter is .[], with more after it.
func (r *Plan) InElements() bool {
	return r.Stream != nil && r.Stream.Flows() && r.Stream.Path == nil && r.Stream.From == 0 && r.Stream.To < 0
}

// Bounded says that the filter may run in this process on a small source, and in a lane on a small record: it is
// direct, or runs a direct filter on each element.
func (r *Plan) Bounded() bool {
	return r.Code.Direct != nil || r.InElements() && r.Each.Bounded()
}

// Bounded reports whether the filter is safe in this process; nil, which returns its input, is.
func (f *Filter) Bounded() bool { return f == nil || f.Direct != nil }
