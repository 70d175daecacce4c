package tree

import (
	"errors"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// Limits of a walk that runs ahead of its visitor. Describing a file takes as long as finding it, and printing its name
// a third of that, so two cores take less time than one.
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
//	                     free ◄────────────┘
type ahead struct {
	batches chan *batch
	free    chan *batch
	quit    chan struct{} // closed: no more entries are visited

	visiting *batch // batch being visited
	filling  *batch // batch being filled
	size     int
	began    time.Time // when filling was started
	walked   error     // why the walk ended; set before batches is closed
}

// batch is a sequence of entries with the directories they are described in; isProgress asks for a progress report
// after them.
type batch struct {
	entries    []pending
	held       []*Held
	isProgress bool
	report     Report
}

// pending is an entry found by the walk.
type pending struct {
	Entry
	in        *Held // its directory, for all but directories; nil: too many are held
	described bool
	report    Report // of the walk up to this entry
}

var errQuit = errors.New("nothing more is visited")

// runAhead is run in a goroutine, concurrently with the visits in the caller's.
func (w *walker) runAhead() error {
	a := &ahead{
		batches: make(chan *batch, batchesAhead), free: make(chan *batch, batchesAhead+2),
		quit: make(chan struct{}), size: firstBatch,
	}
	tells := w.reporter
	w.ahead = a
	if tells.progress != nil {
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
	var seen Report
	whole := false
	defer func() { // also if visit panics: the walk must end before its root can be closed
		close(a.quit)
		for b := range a.batches {
			b.release()
		}
		for _, b := range []*batch{a.visiting, a.filling} {
			if b != nil {
				b.release()
			}
		}
		if !whole {
			w.report = seen
		}
	}()
	if err := w.visitAll(a, &tells, &seen); err != nil {
		return err
	}
	whole = true
	return panics.Again(a.walked)
}

// visitAll describes and visits entries until the walk has ended.
func (w *walker) visitAll(a *ahead, tells *progressReporter, seen *Report) error {
	for b := range a.batches {
		a.visiting = b
		err := w.ctx.Err()
		for i := 0; i < len(b.entries) && err == nil; i++ {
			p := &b.entries[i]
			*seen = p.report
			tells.reportIfDue(p.report)
			if p.described || w.describeIn(p) {
				err = w.visit(w.entryOf(p))
			}
		}
		if err == nil && b.isProgress {
			tells.report(b.report)
		}
		if err != nil {
			return err
		}
		b.release()
		a.visiting = nil
		a.free <- b // never blocks: free has room for all batches
	}
	return nil
}

// describeIn is describe in a directory that the walk holds open.
func (w *walker) describeIn(p *pending) bool {
	at, err := p.in.dir.describe(nameOf(p.Path))
	if err != nil || w.isDenied(at.id) {
		return false
	}
	p.Size, p.Modified, p.Type = at.size, at.mod, at.kind.typeOf()
	return true
}

// entryOf returns the entry to visit, with a hold on its directory if asked for.
func (w *walker) entryOf(p *pending) Entry {
	if w.o.Hold && p.in != nil && p.Type == File {
		p.in.holds.Add(1)
		p.In = p.in
	}
	return p.Entry
}

// queueEntry adds an entry to a batch. The caller's goroutine describes it, unless it is a directory, which the walk
// describes before it enters it.
func (w *walker) queueEntry(top int, base string, e Entry, k kind, typeKnown bool) error {
	p := pending{Entry: e, described: !typeKnown || !w.o.Stat, report: w.report}
	if k != isDir && (w.o.Stat || w.o.Hold) {
		p.in = w.hold(top)
	}
	if !p.described && p.in == nil {
		if !w.describe(top, base, &p.Entry, &k) {
			return errPassed
		}
		p.described = true
	}
	p.Type = k.typeOf()
	return w.ahead.addEntry(p)
}

// addEntry adds an entry to the batch being filled.
func (a *ahead) addEntry(p pending) error {
	b := a.current()
	b.entries = append(b.entries, p)
	switch n := len(b.held); {
	case p.in == nil:
	case n > 0 && b.held[n-1] == p.in:
		p.in.Release() // the batch holds it already
	default:
		b.held = append(b.held, p.in)
	}
	switch {
	case len(b.entries) == a.size:
		a.size = min(2*a.size, largestBatch)
		return a.sendBatch()
	case len(b.entries)%firstBatch == 0:
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

// sendIfOld sends the batch if it is older than batchAge.
func (a *ahead) sendIfOld() error {
	if a.filling == nil || time.Since(a.began) < batchAge {
		return nil
	}
	return a.sendBatch()
}

// sendProgress sends a progress report, after the entries before it.
func (a *ahead) sendProgress(r Report) {
	b := a.current()
	b.isProgress, b.report = true, r
	_ = a.sendBatch() // the walk itself checks for the end
}

func (a *ahead) current() *batch {
	if a.filling == nil {
		select {
		case a.filling = <-a.free:
		default:
			a.filling = &batch{}
		}
		a.began = time.Now()
	}
	return a.filling
}

// sendBatch sends the batch to the visitor.
func (a *ahead) sendBatch() error {
	if a.filling == nil {
		return nil
	}
	select {
	case a.batches <- a.filling:
		a.filling = nil
		return nil
	case <-a.quit:
		return errQuit
	}
}

// release releases the directories and empties the batch for reuse.
func (b *batch) release() {
	for _, in := range b.held {
		in.Release()
	}
	clear(b.held)
	clear(b.entries)
	*b = batch{entries: b.entries[:0], held: b.held[:0]}
}
