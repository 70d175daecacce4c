package jq

import (
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/recent"
)

// prepared is how a filter runs: what of a run depends on the filter and on what it is given by name. Nobody changes it.
type prepared struct {
	code   *filter
	values []any // of the variables

	// The rest is of JSON, not of text.

	reads *node // by code
	cheap bool  // code may run on a small value before its turn
	sieve *sieve

	plan      *plan   // nil: the filter needs a record whole
	each      *filter // of one element; nil: the element itself
	eachReads *node
	eachSieve *sieve
	eachCheap bool
}

// kept are the filters that were prepared last: the next page of an answer, or the next file, is asked for with the same one. They
// weigh their length: all of them hold 1 MB at most, as one of the greatest length does (of nested arrays, commas, and calls of walk).
var kept = recent.New[keptBy, *prepared](maxFilter)

type keptBy struct {
	filter      string
	slurp, text bool
}

// prepare says how the filter of the job runs: as it was kept, or anew. What is given by name makes another filter of the same text,
// and input_filename of another source: those are not kept.
func (j *job) prepare() (*prepared, error) {
	by := keptBy{j.Filter, j.Slurp, j.Text}
	same := len(j.Args) == 0 && !strings.Contains(j.Filter, "input_filename")
	if same {
		if r, ok := kept.Get(by); ok {
			return r, nil
		}
	}
	p, err := parse(j.Filter, j.Args, j.Name)
	if err != nil {
		return nil, err
	}
	r, err := p.prepare(j.Slurp, j.Text)
	if err == nil && same {
		kept.Put(by, r, len(j.Filter)+64)
	}
	return r, err
}

// prepare decides how the filter runs.
func (p *program) prepare(slurp, text bool) (r *prepared, err error) {
	r = &prepared{values: p.values}
	if r.code, err = p.ready(p.query); err != nil || text {
		return r, err
	}
	few := bag{count: 1, weight: aheadMost, largest: aheadMost, single: true}
	r.reads = readsOf(p.query, false)
	_, r.cheap, _ = p.bound(p.query, few)
	r.sieve = sieveOf(p.query, r.reads)
	if r.plan = planOf(p); r.plan == nil || slurp {
		r.plan = nil
		return r, nil
	}
	r.eachReads = readsOf(r.plan.each, r.plan.form == count)
	r.eachSieve = sieveOf(r.plan.each, r.eachReads)
	r.eachCheap = true
	if r.plan.each != nil {
		r.each, err = p.ready(r.plan.each)
		_, r.eachCheap, _ = p.bound(r.plan.each, few)
	}
	return r, err
}
