package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"

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

// RunGroup runs each of j.Filters over the text, which is read and decoded once. The engines of the filters are
// coroutines that take turns for each record. The outcomes are those of the filters alone, but one with Unsure must be
// run alone, and all of a text that is not JSON. out gets the progress.
func (j *Job) RunGroup(ctx context.Context, r io.Reader, out Rows) ([]*Held, error) {
	all, engines := make([]*Held, len(j.Filters)), make([]*engine, len(j.Filters))
	resume, failed := make([]func() (struct{}, bool), len(j.Filters)), make([]error, len(j.Filters))
	var record any
	var end error // io.EOF after the last record
	for i, filter := range j.Filters {
		one := *j
		one.Filter, one.Filters = filter, nil
		p, err := one.Prepare()
		if err != nil {
			return nil, err
		}
		all[i] = &Held{Limit: j.Limit}
		e := &engine{Job: &one, ctx: ctx, out: all[i], Plan: p}
		var stop func()
		resume[i], stop = iter.Pull(func(yield func(struct{}) bool) {
			begun := false // the first record is there before the engine begins
			one.next = func() (any, error) {
				if begun && !yield(struct{}{}) {
					return nil, context.Canceled
				}
				begun = true
				return record, end
			}
			failed[i] = e.consume()
		})
		defer stop()
		engines[i] = e
	}
	send := func(v any) error {
		record = v
		err := errHalted
		for _, next := range resume {
			if _, more := next(); more {
				err = nil
			}
		}
		return err
	}
	reader := Job{Slurp: j.Slurp && j.Text, Text: j.Text, send: send}
	o, err := reader.RunPlan(ctx, &plan.Plan{}, r, out)
	if err != nil || o.Broken != nil {
		return nil, errors.Join(err, errBroken)
	}
	end = io.EOF
	_ = send(nil)
	for i, e := range engines {
		e.Twice, e.Open = o.Twice, o.Open
		if all[i].Outcome = e.Outcome; failed[i] != nil && !errors.Is(failed[i], errHalted) {
			return nil, failed[i]
		}
	}
	return all, nil
}

// consume runs the filter on the records of a group.
func (e *engine) consume() (err error) {
	if e.Slurp && !e.Text {
		return e.slurp()
	}
	for err == nil {
		var v any
		if v, err = e.next(); err == nil {
			err = e.record(v)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// groupRows receives the results of a group from a worker: a row for each filter.
type groupRows struct {
	Rows
	text []byte
	all  []*Held
}

func (g *groupRows) Part(b []byte, last bool) (err error) {
	if g.text = append(g.text, b...); last {
		g.all = append(g.all, new(Held))
		err = json.Unmarshal(g.text, g.all[len(g.all)-1])
		g.text = nil
	}
	return err
}

// RunGroupWorker is RunGroup in a worker process. memory is its limit in bytes.
func RunGroupWorker(ctx context.Context, j Job, t WorkerInput, memory int64, out Rows) ([]*Held, error) {
	g := groupRows{Rows: out}
	_, err := RunWorker(ctx, j, t, memory, int64(len(j.Filters))*PageOutput(MaxHeld), &g, nil)
	if err == nil && len(g.all) != len(j.Filters) {
		err = errFrame
	}
	return g.all, err
}
