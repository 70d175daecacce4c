// Package plan reads a filter and decides how it runs.
//
// It parses and compiles a filter by gojq, and finds out which parts of a record the filter reads, and whether it can
// run on one array element after the other.
package plan

import (
	"encoding/json"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
)

// Plan says how a filter runs. It depends only on the filter and its args, and is read-only.
type Plan struct {
	Code   *gojq.Code
	Values []any // values of the variables
	Safe   bool  // the filter may run in this process on a small source

	// The fields below are set only for JSON sources, not for text.

	Reads  *decode.Projection // parts of a record that Code reads
	Stream *Stream            // of the slurped records, or of an array in the record; nil: the filter needs it whole
}

// New parses and compiles a filter, and decides how it runs; name is the name of the source.
func New(filter string, args map[string]json.RawMessage, name string, slurp, text bool) (*Plan, error) {
	p, err := parse(filter, args, name)
	if err != nil {
		return nil, err
	}
	r := &Plan{Values: p.values, Safe: isSafe(filter, p.query)}
	if r.Code, err = p.compile(p.query); err != nil || text {
		return r, err
	}
	r.Reads = readsOf(p.query)
	if r.Stream = p.stream(p.query); slurp && r.Stream != nil && !r.Stream.Whole() {
		r.Stream = nil
	}
	return r, nil
}
