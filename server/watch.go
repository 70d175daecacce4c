package server

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// An observation never changes: what can be told is that there is a new one, and that one is gone.

const (
	// lookEach is how often the store is looked at for what others did: other processes, and expiry.
	// A look is one stat; only where it shows a change the names are read.
	lookEach = time.Second
	// tellEach is how often a watcher is told at most.
	tellEach = 250 * time.Millisecond
	// maxSubscriptions is how many resources one watcher may have an eye on.
	maxSubscriptions = 100
	// stampGrain is how near to each other two changes may be that look like one, generously.
	stampGrain = 100 * time.Millisecond
)

// watch tells watchers of changes among the observations of their owner. Without watchers it does nothing.
type watch struct {
	store *observations.Store
	each  time.Duration // lookEach

	mu       sync.Mutex
	watchers map[*watcher]bool
	there    map[observations.ID]bool // as of the last look; nil before the first one
	stamp    time.Time                // of the store at that look
	looking  bool                     // a look is due or going on
}

// watcher is one who is told. Its deliver is called by one goroutine at a time, at most every
// tellEach, and may block; an error means that it could not be told now: see wake.
type watcher struct {
	owner   string
	deliver func(changes) error

	mu      sync.Mutex
	pending changes
	uris    map[observations.ID]string // subscribed ones, as the client spelt them
	busy    bool                       // a delivery is due or going on
	last    time.Time
	over    bool
}

// changes are what a watcher is to be told.
type changes struct {
	list bool     // the list of resources is another
	gone []string // URIs of subscribed observations that are no more
}

func (c changes) none() bool { return !c.list && len(c.gone) == 0 }

// add has a watcher told from now on.
func (w *watch) add(one *watcher) {
	if w.store == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers[one] = true
	if !w.looking {
		w.looking = true
		w.there = nil // from before the last pause
		time.AfterFunc(0, w.look)
	}
}

// remove has it told no more; a delivery may still be going on.
func (w *watch) remove(one *watcher) {
	w.mu.Lock()
	delete(w.watchers, one)
	w.mu.Unlock()
	one.mu.Lock()
	one.over = true
	one.mu.Unlock()
}

// of are the watchers of an owner.
func (w *watch) of(owner string) (all []*watcher) {
	for one := range w.watchers {
		if one.owner == owner {
			all = append(all, one)
		}
	}
	return all
}

// made says that this process has kept an observation; others are found by look.
func (w *watch) made(owner string, id observations.ID) {
	w.mu.Lock()
	found := w.there[id] // by a look, which has told it
	if w.there != nil {
		w.there[id] = true
	}
	told := w.of(owner)
	w.mu.Unlock()
	if found {
		return
	}
	for _, one := range told {
		one.mark(true, "")
	}
}

// look finds what has changed in the store, tells it, and looks again later while there are watchers.
func (w *watch) look() {
	w.find()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looking = len(w.watchers) > 0; w.looking {
		time.AfterFunc(w.each, w.look)
	}
}

func (w *watch) find() {
	stamp, err := w.store.Stamp()
	w.mu.Lock()
	unchanged := w.there != nil && stamp.Equal(w.stamp)
	w.mu.Unlock()
	if err != nil || unchanged {
		return
	}
	now, err := w.store.IDs()
	if err != nil {
		return
	}
	fresh, lost, told := w.compare(now, stamp)
	for owner, watchers := range told {
		w.tell(owner, watchers, fresh, lost)
	}
}

// compare takes now for what is there, and says how it differs from what was, and who is to be told.
func (w *watch) compare(now map[observations.ID]bool, stamp time.Time) (fresh, lost []observations.ID, told map[string][]*watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.there != nil {
		fresh, lost = missing(now, w.there), missing(w.there, now)
	}
	w.there, w.stamp = now, stamp
	if time.Since(stamp) < stampGrain { // another change may have come since that shows the same stamp
		w.stamp = time.Time{}
	}
	told = map[string][]*watcher{}
	for one := range w.watchers {
		told[one.owner] = append(told[one.owner], one)
	}
	return fresh, lost, told
}

// missing are those of the first that the second lacks.
func missing(of, from map[observations.ID]bool) (ids []observations.ID) {
	for id := range of {
		if !from[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// tell tells an owner's watchers what concerns them.
func (w *watch) tell(owner string, watchers []*watcher, fresh, lost []observations.ID) {
	theirs := func(id observations.ID) bool {
		_, err := w.store.Look(owner, id)
		return err == nil
	}
	list := slices.ContainsFunc(fresh, theirs)
	for _, id := range lost {
		switch _, err := w.store.Look(owner, id); {
		case err == nil: // made by this process since the look began
			w.mu.Lock()
			w.there[id] = true
			w.mu.Unlock()
		case errors.Is(err, observations.ErrExpired):
			list = true
			for _, one := range watchers {
				one.mark(true, id)
			}
		}
	}
	for _, one := range watchers {
		one.mark(list, "")
	}
}

// subscribe has the watcher told when an observation is gone; uri is its name as the client spelt it.
func (one *watcher) subscribe(id observations.ID, uri string) error {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.uris[id] == "" && len(one.uris) >= maxSubscriptions {
		return errSubscriptions
	}
	if one.uris == nil {
		one.uris = map[observations.ID]string{}
	}
	one.uris[id] = uri
	return nil
}

var errSubscriptions = errors.New("at most 100 resources can be subscribed to at once; unsubscribe from one")

func (one *watcher) unsubscribe(id observations.ID) {
	one.mu.Lock()
	defer one.mu.Unlock()
	delete(one.uris, id)
}

// mark notes what is to be told: that the list has changed, and which observation is gone, "" for none.
func (one *watcher) mark(list bool, gone observations.ID) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.pending.list = one.pending.list || list
	if uri := one.uris[gone]; uri != "" {
		one.pending.gone = append(one.pending.gone, uri)
		delete(one.uris, gone) // it can go only once
	}
	one.schedule()
}

// wake tries again to tell what could not be told.
func (one *watcher) wake() {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.schedule()
}

// schedule is called with mu held.
func (one *watcher) schedule() {
	if one.busy || one.over || one.pending.none() {
		return
	}
	one.busy = true
	time.AfterFunc(max(0, tellEach-time.Since(one.last)), one.tell)
}

func (one *watcher) tell() {
	one.mu.Lock()
	what := one.pending
	one.pending = changes{}
	over := one.over
	one.mu.Unlock()
	var err error
	if !over && !what.none() {
		err = one.deliver(what)
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.busy, one.last = false, time.Now()
	if err != nil { // until somebody wakes it
		one.pending.list = one.pending.list || what.list
		one.pending.gone = append(what.gone, one.pending.gone...)
		return
	}
	one.schedule()
}
