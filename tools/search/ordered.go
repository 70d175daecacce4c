package search

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/lines"
	"github.com/mcp-funnel/mcp-funnel/internal/panics"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Bounds of what is held while files are searched at once: at most (ahead + workers) × (chunksHeld+1) chunks, and with
// them about 20 MiB in all, whatever is found.
const (
	chunkSize  = 32 << 10
	chunksHeld = 2
	ahead      = 32 // jobs that may be finished, or under way, before the one that is being told
	maxJob     = 16 // files: handing over one by one costs more than searching small ones
	maxWorkers = 16 // each may hold some 5 MiB of a text
)

// job is a few files to search, one after the other. Its results are written by the worker before it closes chunks.
type job struct {
	targets []target
	results []result // of each target
	chunks  chan []byte
}

// result is what became of one file.
type result struct {
	status  status
	err     error
	matches int64
	window  *lines.Line // the first match of which a window is shown
	odd     bool        // a line that is shown is not UTF-8
	short   bool        // not searched whole: lines.Totals.Short
	part    bool        // an observation that was kept in part
	shrunk  bool        // it became shorter meanwhile
	stored  content.Encoding
}

// done are jobs to be filled anew: there is one for every few files, and a new one each time would keep the collector busy.
var done = sync.Pool{New: func() any {
	return &job{targets: make([]target, 0, maxJob), results: make([]result, 0, maxJob)}
}}

// again gives the job away, empty.
func (j *job) again() {
	clear(j.targets)
	clear(j.results)
	j.targets, j.results, j.chunks = j.targets[:0], j.results[:0], nil
	done.Put(j)
}

type status int

const (
	searched status = iota
	binary
	failed
)

// run searches the places:
//
//	walk ─► order (32) ─────────────────────────► told in this order, one job at a time
//	  └───► work ─► workers ─► chunks of records ──┘
//
// A worker whose job is not yet told waits once it has two chunks. Jobs are taken up in order, so the one being told always has its worker.
func (s *searcher) run(ctx context.Context, places []place) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	order, work := make(chan *job, ahead), make(chan *job, ahead)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
	}()
	var walked error
	wg.Go(func() {
		defer close(order)
		defer close(work)
		panics.Into(&walked, func() { walked = s.jobs(ctx, places, work, order) })
	})
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		wg.Go(func() {
			w := newWorker(ctx, s)
			for j := range work { // to the end, so that each target is released
				w.search(j)
			}
		})
	}
	var told atomic.Int64
	wg.Go(func() { s.progress(ctx, &told) })

	for j := range order {
		for c := range j.chunks {
			if _, err := s.out.Write(c); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range j.results {
			_ = panics.Again(j.results[i].err)
			s.tally(&j.targets[i], &j.results[i])
		}
		told.Add(int64(len(j.results)))
		j.again()
	}
	if walked != nil { // order is closed: the walk has ended
		return panics.Again(walked)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.writeCounts()
}

// jobs hands on the targets in jobs, first of one file each, so that few files are shared out too.
func (s *searcher) jobs(ctx context.Context, places []place, to ...chan<- *job) error {
	var j *job
	send := func() error {
		if j == nil {
			return nil
		}
		j.results = j.results[:len(j.targets)]
		full := j
		j = nil
		for i, c := range to { // what is in order, the last, is sure to have been taken up
			select {
			case c <- full:
			case <-ctx.Done():
				if i == 0 {
					full.release()
				}
				return ctx.Err()
			}
		}
		return nil
	}
	n := 0
	err := s.targets(ctx, places, func(t target) error {
		if j == nil {
			j = done.Get().(*job)
			j.chunks = make(chan []byte, chunksHeld)
		}
		j.targets = append(j.targets, t)
		if n++; len(j.targets) < min(1+n/64, maxJob) {
			return nil
		}
		return send()
	})
	if err == nil {
		return send()
	}
	if j != nil {
		j.release()
	}
	return err
}

// release lets go of what will not be searched.
func (j *job) release() {
	for i := range j.targets {
		j.targets[i].release()
	}
}

// progress tells how many files were searched, until ctx ends.
func (s *searcher) progress(ctx context.Context, told *atomic.Int64) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n := told.Load()
			s.out.Progress(n, 0, fmt.Sprintf("%d files searched", n))
		}
	}
}

// tally takes the result of one file.
func (s *searcher) tally(t *target, j *result) {
	s.seen++
	switch j.status {
	case searched:
		s.searched++
	case binary:
		s.binary++
	case failed:
		if s.failed++; s.why == nil {
			s.why = tools.Unread(t.name(), j.err)
		}
	}
	if j.part {
		s.parts++
	}
	if j.shrunk {
		s.shrunk++
	}
	if j.short && len(s.short) < 10 {
		s.short = append(s.short, t.name())
	}
	if j.matches == 0 {
		return
	}
	s.matches += j.matches
	s.files++
	s.decoded.Add(t.name(), j.stored)
	if j.odd {
		s.odd++
	}
	if j.window != nil && s.window == nil {
		s.window, s.windowed = j.window, t.name()
	}
	if s.Show == "counts" {
		s.counts = append(s.counts, count{t.name(), j.matches})
	}
}

// writeCounts writes the records of show=counts: most matches first, then by path.
func (s *searcher) writeCounts() error {
	slices.SortStableFunc(s.counts, func(a, b count) int {
		switch {
		case a.matches != b.matches:
			return int(max(min(b.matches-a.matches, 1), -1))
		default:
			return strings.Compare(a.name, b.name)
		}
	})
	var b []byte
	for _, c := range s.counts {
		b = appendCount(b, c)
		if len(b) >= chunkSize {
			if _, err := s.out.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	if len(b) == 0 {
		return nil
	}
	_, err := s.out.Write(b)
	return err
}
