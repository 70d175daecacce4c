package jq

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// Options limit the memory and time of a filter. A zero value means the default.
type Options struct {
	Memory   int64         // bytes a worker may use; default worker.MachineMemory, at least worker.MinMemory
	CountFor time.Duration // how long results are counted after the page is full; default 2 s
	// InProcess never starts a worker, so memory has no limit: for tests and for filters of the operator.
	InProcess bool
}

type args struct {
	Source tools.Strings              `json:"source" jsonschema:"path, glob, obs:ID" help:"File, obs:ID, a glob of files, or an array of these: the filter runs on each in turn, and input_filename names it; with slurp on the records of all."`
	Filter tools.Queries              `json:"filter" jsonschema:"or several" help:"Filter in the language of jq; or several, an array or an object by name, which run in one reading of the source: the answer has a row for each, an error of one is its row. Then offset and save are not taken, and limit is for each."`
	Raw    bool                       `json:"raw,omitempty" help:"Print strings without quotes, as jq -r does. Default: false."`
	Slurp  bool                       `json:"slurp,omitempty" jsonschema:"all records as array" help:"Give all records to the filter as one array, as jq -s does; with text all of it as one string, as jq -R -s does. Default: false."`
	Text   bool                       `json:"text,omitempty" jsonschema:"lines as strings" help:"Take the source for text: each line is a string. Default: false."`
	Args   map[string]json.RawMessage `json:"args,omitempty" jsonschema:"$name" help:"Object of values that the filter names, $name for the key name."`
	Offset int64                      `json:"offset,omitempty" range:"0," help:"Results to skip, as the page before said. Default: 0."`
	Limit  int64                      `json:"limit,omitempty" range:"0," help:"Show at most so many results. Default: 0, as many as a page holds."`
	Save   bool                       `json:"save,omitempty" jsonschema:"as obs:" help:"Keep all results as a new observation, and print its receipt. Default: false."`
}

// Check implements [tools.Checker]. Several filters are checked when they run, because the others run if one is wrong.
func (a args) Check() error {
	if a.Filter.Several {
		if a.Offset > 0 || a.Save {
			return errors.New("jq: offset and save go with one filter; give it as a string")
		}
		return nil
	}
	_, err := (&engine.Job{Filter: a.Filter.Text(), Args: a.Args, Slurp: a.Slurp, Text: a.Text}).Prepare()
	return err
}
