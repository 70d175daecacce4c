package engine

import (
	"encoding/json"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// Job is one run of a filter over a text, in this process or in a worker: the answers are the same.
type Job struct {
	Name   string                     `json:"name"` // name of the source
	Filter string                     `json:"filter"`
	Args   map[string]json.RawMessage `json:"args,omitempty"`
	Raw    bool                       `json:"raw,omitempty"`
	Slurp  bool                       `json:"slurp,omitempty"`
	Text   bool                       `json:"text,omitempty"`
	Offset int64                      `json:"offset,omitempty"` // results to skip, which are only counted
	Limit  int64                      `json:"limit,omitempty"`  // results wanted after those; 0: all
	Size   int64                      `json:"size,omitempty"`   // bytes of the file; 0: a pipe
	Whole  bool                       `json:"whole,omitempty"`  // run on the array of all records, without a stream

	Filters []string `json:"filters,omitempty"` // of a group, whose results a Group reads; Limit is that of each

	Most int64 `json:"most,omitempty"` // results that are counted, if more are not wanted; 0: all

	send func(v any) error // takes the records for all filters of a group; nil: the filter runs on them

	Largest int64 `json:"-"` // bytes of a record that are decoded before it is read by element, for tests; 0: the default
}

// Prepare parses and compiles the filter of the job, and decides how it runs. Those of a group are prepared when it runs.
func (j *Job) Prepare() (*plan.Plan, error) {
	if j.Filters != nil {
		return &plan.Plan{}, nil
	}
	return plan.New(j.Filter, j.Args, j.Name, j.Slurp, j.Text)
}

// Rows receives the results of a run.
type Rows interface {
	Part(b []byte, last bool) error // a result to show, or a part of it
	Wanted() bool                   // false: further results are only counted
	Progress(bytes int64)           // bytes of the text read so far; must be cheap
}

// Outcome says how a run ended.
type Outcome struct {
	Results int64             `json:"results"` // all of them, wanted or not
	Records int64             `json:"records"` // texts the filter was run on
	Failed  int64             `json:"failed,omitempty"`
	First   *Failure          `json:"first,omitempty"`
	Broken  *decode.Broken    `json:"broken,omitempty"` // where reading ended before the end of the text
	Twice   *decode.Duplicate `json:"twice,omitempty"`
	Open    bool              `json:"open,omitempty"`    // the text ends with a number or literal, which may be cut off
	Compile string            `json:"compile,omitempty"` // the filter does not compile: nothing was run
	Unsure  bool              `json:"unsure,omitempty"`  // there are no results: run the job again with Whole

	Uncounted bool `json:"uncounted,omitempty"` // there are more than Results
}

// Failure is a record on which the filter failed.
type Failure struct {
	Record  int64  `json:"record"`
	Element int64  `json:"element"` // of an array that is read element by element; else -1
	Results int64  `json:"results"` // results of the record that came before its error
	Message string `json:"message"`
}
