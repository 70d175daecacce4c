package tree

import (
	"errors"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// How far a walk goes ahead of what is visited: to describe a file costs as much as to find it, and to write its name down a
// third of that, so that two cores take less time than one.
const (
	batchesAhead = 4
	firstBatch   = 16 // entries: where there are few, both are soon at work
	largestBatch = 256
	batchAge     = 20 * time.Millisecond // on a slow disk what was found does not wait for more
)

// ahead is between a walk, which goes on in a goroutine of its own, and its caller's, where the entries are described
// and visited:
//
//	run ─► put ─► batches (4) ─► visitAll: describe, visit
//	               free ◄────────────┘
type ahead struct {
	batches chan *batch
	free    chan *batch
	quit    chan struct{} // closed: nothing more is visited

	now    *batch // is visited
	next   *batch // is filled
	size   int
	began  time.Time // next did
	walked error     // by which the walk ended; written before batches is closed
}

// batch is some entries in order, with the directories they are described in, and perhaps the news that progress is to be told.
type batch struct {
	entries []pending
	held    []*Held
	tell    bool
	report  Report
}

// pending is an entry that was found.
type pending struct {
	Entry
	in        *Held // where it is, but for directories; nil: too many are held
	described bool
	report    Report // of the walk as far as here
}

var errQuit = errors.New("nothing more is visited")

// runAhead is run beside the caller's goroutine.
func (w *walker) runAhead() error {
	a := &ahead{batches: make(chan *batch, batchesAhead), free: make(chan *batch, batchesAhead+2), quit: make(chan struct{}), size: firstBatch}
	tells := w.tells
	w.ahead = a
	if tells.progress != nil {
		w.tells.progress = a.tell
	}
	go func() {
		defer close(a.batches)
		panics.Into(&a.walked, func() {
			if a.walked = w.run(); a.walked == nil {
				a.walked = a.send()
			}
		})
	}()
	var seen Report
	whole := false
	defer func() { // also where visit panics: the walk ends before its root can be closed
		close(a.quit)
		for b := range a.batches {
			b.release()
		}
		for _, b := range []*batch{a.now, a.next} {
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

// visitAll describes and visits what the walk finds until it has ended.
func (w *walker) visitAll(a *ahead, tells *teller, seen *Report) error {
	for b := range a.batches {
		a.now = b
		err := w.ctx.Err()
		for i := 0; i < len(b.entries) && err == nil; i++ {
			p := &b.entries[i]
			*seen = p.report
			tells.inTime(p.report)
			if p.described || w.describeIn(p) {
				err = w.visit(w.handed(p))
			}
		}
		if err == nil && b.tell {
			tells.tell(b.report)
		}
		if err != nil {
			return err
		}
		b.release()
		a.now = nil
		a.free <- b // there is room for all there are
	}
	return nil
}

// describeIn is describe, in the directory that the walk has handed out.
func (w *walker) describeIn(p *pending) bool {
	at, err := p.in.dir.describe(nameOf(p.Path))
	if err != nil || w.denies(at.id) {
		return false
	}
	p.Size, p.Modified, p.Type = at.size, at.mod, at.kind.typeOf()
	return true
}

// handed is the entry as it is visited.
func (w *walker) handed(p *pending) Entry {
	if w.o.Hold && p.in != nil && p.Type == File {
		p.in.holds.Add(1)
		p.In = p.in
	}
	return p.Entry
}

// send is hand where the caller's goroutine describes what can wait: not directories, which are gone into before.
func (w *walker) send(top int, base string, e Entry, k kind, told bool) error {
	p := pending{Entry: e, described: !told || !w.o.Stat, report: w.report}
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
	return w.ahead.put(p)
}

// put adds an entry to the batch that is filled.
func (a *ahead) put(p pending) error {
	b := a.batch()
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
		return a.send()
	case len(b.entries)%firstBatch == 0:
		return a.age()
	}
	return nil
}

// over says that nothing more is visited: a walk that finds nothing more to hand on would not be told by send.
func (a *ahead) over() bool {
	select {
	case <-a.quit:
		return true
	default:
		return false
	}
}

// age sends the batch on where it has waited for long.
func (a *ahead) age() error {
	if a.next == nil || time.Since(a.began) < batchAge {
		return nil
	}
	return a.send()
}

// tell sends the news of progress on, behind the entries before it.
func (a *ahead) tell(r Report) {
	b := a.batch()
	b.tell, b.report = true, r
	_ = a.send() // the walk finds out
}

func (a *ahead) batch() *batch {
	if a.next == nil {
		select {
		case a.next = <-a.free:
		default:
			a.next = &batch{}
		}
		a.began = time.Now()
	}
	return a.next
}

// send hands the batch on.
func (a *ahead) send() error {
	if a.next == nil {
		return nil
	}
	select {
	case a.batches <- a.next:
		a.next = nil
		return nil
	case <-a.quit:
		return errQuit
	}
}

// release lets go of the directories, and makes the batch an empty one.
func (b *batch) release() {
	for _, in := range b.held {
		in.Release()
	}
	clear(b.held)
	clear(b.entries)
	*b = batch{entries: b.entries[:0], held: b.held[:0]}
}
