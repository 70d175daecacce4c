package server

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// An observation never changes: the server reports only that one was added or removed.

const (
	// storePollInterval is the interval at which the store is polled for changes, also by other processes.
	// A poll is one stat; the names are read only if it shows a change.
	storePollInterval = time.Second
	// maxSubscriptions is the maximum number of resources to which one subscriber can subscribe.
	maxSubscriptions = 100
	// modTimeGrain is an upper bound of the time between two changes that may have equal modification times.
	modTimeGrain = 100 * time.Millisecond
)

// storeWatcher notifies subscribers of changes among the observations of their owner. It polls the store only while
// there are subscribers.
type storeWatcher struct {
	store    *observations.Store
	interval time.Duration // storePollInterval

	mu          sync.Mutex
	subscribers map[*subscriber]bool
	known       map[observations.ID]bool // the observations at the last poll; nil before the first one
	modTime     time.Time                // of the store at that poll
	polling     bool                     // a poll is scheduled or running
}

// subscriber receives changes. One goroutine at a time calls its send, which may block. If send fails, the changes are
// kept until the next call of enqueue.
type subscriber struct {
	owner string
	send  func(changes) error

	mu      sync.Mutex
	pending changes
	uris    map[observations.ID]string // subscribed URIs, as the client spelled them
	sending bool                       // a call of send is running
	removed bool
}

// changes are the changes to report to a subscriber.
type changes struct {
	list bool     // the list of resources has changed
	gone []string // URIs of subscribed observations that were removed
}

func (c changes) none() bool { return !c.list && len(c.gone) == 0 }

// add adds a subscriber and starts polling if it is the first. Without a store it does nothing.
func (w *storeWatcher) add(one *subscriber) {
	if w.store == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subscribers[one] = true
	if !w.polling {
		w.polling = true
		w.known = nil // outdated since polling stopped
		time.AfterFunc(0, w.poll)
	}
}

// remove removes a subscriber; a call of its send may still be running.
func (w *storeWatcher) remove(one *subscriber) {
	w.mu.Lock()
	delete(w.subscribers, one)
	w.mu.Unlock()
	one.mu.Lock()
	one.removed = true
	one.mu.Unlock()
}

// byOwner returns the subscribers of each owner. The caller must hold mu.
func (w *storeWatcher) byOwner() map[string][]*subscriber {
	all := map[string][]*subscriber{}
	for one := range w.subscribers {
		all[one.owner] = append(all[one.owner], one)
	}
	return all
}

// poll reports the changes in the store and schedules the next poll while there are subscribers.
func (w *storeWatcher) poll() {
	w.detectChanges()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.polling = len(w.subscribers) > 0; w.polling {
		time.AfterFunc(w.interval, w.poll)
	}
}

func (w *storeWatcher) detectChanges() {
	stamp, err := w.store.ModTime()
	w.mu.Lock()
	unchanged := w.known != nil && stamp.Equal(w.modTime)
	w.mu.Unlock()
	if err != nil || unchanged {
		return
	}
	now, err := w.store.IDs()
	if err != nil {
		return
	}
	w.mu.Lock()
	var fresh, lost []observations.ID
	if w.known != nil {
		fresh, lost = difference(now, w.known), difference(w.known, now)
	}
	w.known, w.modTime = now, stamp
	if time.Since(stamp) < modTimeGrain { // a later change may have the same modification time
		w.modTime = time.Time{}
	}
	watching := w.byOwner()
	w.mu.Unlock()
	for owner, watchers := range watching {
		w.notifyOwner(owner, watchers, fresh, lost)
	}
}

// difference returns the IDs of the first set that are missing in the second.
func difference(of, from map[observations.ID]bool) (ids []observations.ID) {
	for id := range of {
		if !from[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// notifyOwner reports to an owner's subscribers those added and removed observations that belong to the owner.
func (w *storeWatcher) notifyOwner(owner string, watchers []*subscriber, fresh, lost []observations.ID) {
	isOwned := func(id observations.ID) bool {
		_, err := w.store.Stat(owner, id)
		return err == nil
	}
	gone := slices.DeleteFunc(slices.Clone(lost), func(id observations.ID) bool {
		_, err := w.store.Stat(owner, id)
		return !errors.Is(err, observations.ErrExpired)
	})
	list := len(gone) > 0 || slices.ContainsFunc(fresh, isOwned)
	for _, one := range watchers {
		one.enqueue(list, gone...)
	}
}

// subscribe subscribes to the removal of an observation; uri is its name as the client spelled it. It returns an
// error if there are 100 subscriptions already.
func (one *subscriber) subscribe(id observations.ID, uri string) error {
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

func (one *subscriber) unsubscribe(id observations.ID) {
	one.mu.Lock()
	defer one.mu.Unlock()
	delete(one.uris, id)
}

// enqueue adds changes to report: whether the list has changed, and the IDs of removed observations. Without a change
// it sends again those whose send failed.
func (one *subscriber) enqueue(list bool, gone ...observations.ID) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.pending.list = one.pending.list || list
	for _, id := range gone {
		if uri := one.uris[id]; uri != "" {
			one.pending.gone = append(one.pending.gone, uri)
			delete(one.uris, id) // it can be removed only once
		}
	}
	one.schedule()
}

// schedule starts sendPending if there are changes and it is not running. The caller must hold mu.
func (one *subscriber) schedule() {
	if one.sending || one.removed || one.pending.none() {
		return
	}
	one.sending = true
	go one.sendPending()
}

func (one *subscriber) sendPending() {
	one.mu.Lock()
	what := one.pending
	one.pending = changes{}
	removed := one.removed
	one.mu.Unlock()
	var err error
	if !removed && !what.none() {
		err = one.send(what)
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.sending = false
	if err != nil { // keep the changes until the next call of enqueue
		one.pending.list = one.pending.list || what.list
		one.pending.gone = append(what.gone, one.pending.gone...)
		return
	}
	one.schedule()
}
