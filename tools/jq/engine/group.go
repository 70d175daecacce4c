package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

// MaxHeld is how many bytes of results of each filter of a group are held: more than a page shows.
const MaxHeld = 256 << 10

// Held holds the first results of one filter of a group, and how its run ended.
type Held struct {
	Limit   int64 // results that are held; 0: as many as there is room for
	Rows    []string
	Outcome Outcome

	row  []byte
	size int
}

// Wanted implements [Rows].
func (h *Held) Wanted() bool {
	return h.size < MaxHeld && (h.Limit == 0 || int64(len(h.Rows)) < h.Limit)
}

// Progress implements [Rows].
func (h *Held) Progress(int64) {}

// Part implements [Rows].
func (h *Held) Part(b []byte, last bool) error {
	if h.row = append(h.row, b[:min(len(b), MaxHeld-len(h.row))]...); last && h.Wanted() {
		h.Rows, h.size, h.row = append(h.Rows, string(h.row)), h.size+len(h.row)+1, nil
	}
	return nil
}

// runGroup runs each of j.Filters over the text, which is read and decoded once: each record goes to one filter after the
// other. Results and outcomes are those of the filters alone, and out gets them as [Group] reads them. Of a text that is
// not JSON there are none, but an error.
func (j *Job) runGroup(ctx context.Context, r io.Reader, out Rows) (Outcome, error) {
	var all []*Held
	var engines []*engine
	for _, filter := range j.Filters {
		one := *j
		one.Filter, one.Filters = filter, nil
		p, err := one.Prepare()
		if err != nil {
			return Outcome{}, err
		}
		h := &Held{Limit: j.Limit}
		all, engines = append(all, h), append(engines, &engine{Job: &one, ctx: ctx, out: h, Plan: p})
	}
	running := slices.Clone(engines)
	reader := Job{Slurp: j.Slurp, Text: j.Text, send: func(v any) (failed error) {
		running = slices.DeleteFunc(running, func(e *engine) bool {
			err := e.record(v)
			if err != nil && !errors.Is(err, errHalted) {
				failed = err
			}
			return err != nil
		})
		if failed == nil && len(running) == 0 {
			failed = errHalted
		}
		return failed
	}}
	read, err := reader.RunPlan(ctx, &plan.Plan{}, r, out)
	if err == nil && read.Broken != nil {
		err = errBroken
	}
	for i, e := range engines {
		if all[i].Outcome = e.Outcome; err == nil {
			var row []byte
			all[i].Outcome.Twice, all[i].Outcome.Open = read.Twice, read.Open
			if row, err = json.Marshal(all[i]); err == nil {
				err = out.Part(row, true)
			}
		}
	}
	return Outcome{}, err
}

// Group receives the results of a job with Filters: a row of JSON for each. Its Rows get the progress.
type Group struct {
	Rows
	All []*Held

	row []byte
}

// Part implements [Rows].
func (g *Group) Part(b []byte, last bool) error {
	if g.row = append(g.row, b...); !last {
		return nil
	}
	h := new(Held)
	err := json.Unmarshal(g.row, h)
	g.row, g.All = nil, append(g.All, h)
	return err
}
