// Package plan reads a filter and decides how it runs.
//
// It parses and compiles a filter by gojq, and finds out which parts of a record the filter reads, whether the filter
// can run on one array element after the other, and whether a Go function can replace gojq.
package plan

import (
	"encoding/json"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// Plan says how a filter runs. It depends only on the filter and its args, and is read-only.
type Plan struct {
	Code   *Filter
	Values []any // values of the variables

	// The fields below are set only for JSON sources, not for text.

	Reads *decode.Projection // parts of a record that Code reads

	Stream    *Stream            // nil if the filter needs a whole record
	Each      *Filter            // runs on each element; nil returns the element itself
	EachReads *decode.Projection // parts of an element that Each reads

	Fold *Fold // of the records that are slurped, or of the array of the stream; nil: the filter needs the array
}

// New parses and compiles a filter, and decides how it runs; name is the name of the source.
func New(filter string, args map[string]json.RawMessage, name string, slurp, text bool) (*Plan, error) {
	p, err := parse(filter, args, name)
	if err != nil {
		return nil, err
	}
	r := &Plan{Values: p.values}
	if r.Code, err = p.compileFilter(p.query); err != nil || text {
		return r, err
	}
	r.Reads = readsOf(p.query, false)
	if slurp {
		r.Fold = p.fold(p.query)
		return r, nil
	}
	if r.Stream = streamOf(p.query); r.Stream == nil {
		r.Stream, r.Fold = p.foldedStream()
		return r, nil
	}
	r.EachReads = readsOf(r.Stream.Each, r.Stream.Form == Count)
	if r.Stream.Each != nil {
		r.Each, err = p.compileFilter(r.Stream.Each)
	}
	return r, err
}

// InElements reports whether arrays of any size are read element by element: the filter begins with .[].
func (r *Plan) InElements() bool {
	return r.Stream != nil && r.Stream.Flows() && r.Stream.wholeRecord()
}

// Bounded reports whether the filter may run in this process on a small source, and in a lane on a small record: the
// filter is direct, or runs a direct filter on each element.
func (r *Plan) Bounded() bool {
	return r.Code.Direct != nil || r.InElements() && r.Each.Bounded()
}

// Bounded reports whether the filter is safe in this process. A nil filter is: it returns its input.
func (f *Filter) Bounded() bool { return f == nil || f.Direct != nil }
