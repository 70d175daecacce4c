package tree

import (
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
)

// Limits of a walk that runs ahead of its visitor. Describing a file takes as long as finding it, so two cores take less
// time than one.
const (
	batchesAhead = 4
	firstBatch   = 16 // entries: starts small so that both goroutines have work soon
	largestBatch = 256
	batchAge     = 20 * time.Millisecond // on a slow disk a batch does not wait for more entries
)

// ahead connects a walk, which runs in its own goroutine, with the caller's goroutine, which describes and visits the
// entries:
//
//	run ─► addEntry ─► batches (4) ─► visitAll: describe, visit
type ahead struct {
	batches chan *batch
	quit    chan struct{} // closed: no more entries are visited

	visiting *batch
	filling  *batch
	size     int       // entries at which filling is sent
	began    time.Time // when filling got its first entry
	walked   error     // why the walk ended; set before batches is closed
}

// batch is a sequence of entries. The visitor reports progress after them, unless that is nil.
type batch struct {
	entries  []pending
	progress *Report
}

// pending is an entry found by the walk.
type pending struct {
	Entry
	in       *Held // its directory, for all but directories; nil: too many are held
	describe bool
	report   Report // of the walk up to this entry
}

// runAhead runs the walk in a new goroutine, and the visits in the caller's.
func (w *walker) runAhead() error {
	a := &ahead{
		batches: make(chan *batch, batchesAhead), quit: make(chan struct{}),
		visiting: &batch{}, filling: &batch{}, size: firstBatch,
	}
	reporter := w.reporter
	w.ahead = a
	if reporter.progress != nil {
		w.reporter.progress = a.sendProgress
	}
	go func() {
		defer close(a.batches)
		panics.Into(&a.walked, func() {
			if a.walked = w.run(); a.walked == nil {
				a.walked = a.sendBatch()
			}
		})
	}()
	var visited Report
	visitedAll := false
	defer func() { // also if visit panics: the walk must end before its root can be closed
		close(a.quit)
		for b := range a.batches {
			b.release()
		}
		a.visiting.release()
		a.filling.release()
		if !visitedAll {
			w.report = visited
		}
	}()
	if err := w.visitAll(a, &reporter, &visited); err != nil {
		return err
	}
	visitedAll = true
	return panics.Again(a.walked)
}

// visitAll describes and visits entries until the walk has ended. It sets visited to the report up to the entry it
// visits.
func (w *walker) visitAll(a *ahead, reporter *progressReporter, visited *Report) error {
	for b := range a.batches {
		a.visiting = b
		if err := w.ctx.Err(); err != nil {
			return err
		}
		for i := range b.entries {
			p := &b.entries[i]
			*visited = p.report
			reporter.reportIfDue(p.report)
			if p.describe && !w.describe(p.in.dir, nameOf(p.Path), &p.Entry) {
				continue
			}
			if w.o.Hold && p.Type == File {
				p.In, p.in = p.in, nil // the visitor releases it
			}
			if err := w.visit(p.Entry); err != nil {
				return err
			}
		}
		if b.progress != nil {
			reporter.report(*b.progress)
		}
		b.release()
	}
	return nil
}

// queueEntry adds an entry to a batch. The caller's goroutine describes it, unless it is a directory, which the walk
// describes before it enters it.
func (w *walker) queueEntry(top int, base string, e Entry, typeKnown bool) error {
	stat := w.o.Stat && (w.o.Type == "" || w.o.Type == e.Type)
	p := pending{Entry: e, describe: typeKnown && stat, report: w.report}
	if e.Type != Dir && (stat || w.o.Hold) {
		p.in = w.hold(top)
	}
	if p.describe && p.in == nil {
		if !w.describeIn(top, base, &p.Entry) {
			return errSkipped
		}
		p.describe = false
	}
	return w.ahead.addEntry(p)
}

// addEntry adds an entry to the batch being filled.
func (a *ahead) addEntry(p pending) error {
	if len(a.filling.entries) == 0 {
		a.began = time.Now()
	}
	a.filling.entries = append(a.filling.entries, p)
	switch n := len(a.filling.entries); {
	case n == a.size:
		a.size = min(2*a.size, largestBatch)
		return a.sendBatch()
	case n%firstBatch == 0:
		return a.sendIfOld()
	}
	return nil
}

// stopped reports whether no more entries are visited. A walk that finds no more entries would not notice it in
// sendBatch.
func (a *ahead) stopped() bool {
	select {
	case <-a.quit:
		return true
	default:
		return false
	}
}

// sendIfOld sends the batch if its first entry was added more than batchAge ago.
func (a *ahead) sendIfOld() error {
	if time.Since(a.began) < batchAge {
		return nil
	}
	return a.sendBatch()
}

// sendProgress sends a progress report, after the entries before it.
func (a *ahead) sendProgress(r Report) {
	a.filling.progress = &r
	_ = a.sendBatch() // the walk itself checks for the end
}

// sendBatch sends the batch to the visitor, unless it is empty.
func (a *ahead) sendBatch() error {
	if len(a.filling.entries) == 0 && a.filling.progress == nil {
		return nil
	}
	select {
	case a.batches <- a.filling:
		a.filling = &batch{entries: make([]pending, 0, a.size)}
		return nil
	case <-a.quit:
		return errQuit
	}
}

// release releases the directories. It may be called again.
func (b *batch) release() {
	for i := range b.entries {
		if in := b.entries[i].in; in != nil {
			in.Release()
		}
	}
	b.entries = nil
}
