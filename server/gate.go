package server

import "sync"

// gate bounds what runs at once, over all connections: calls, and the bytes of their messages. An identity
// that is not the only one may take a share of each.
type gate struct {
	maxCalls int
	maxBytes int64

	mu     sync.Mutex
	shared bool // there is more than one identity
	all    load
	held   map[string]load // by identity
}

// load is what runs.
type load struct {
	calls int
	bytes int64
}

// fits says whether a message of that size may run beside these. One is always let in, however large.
func (l load) fits(size int, maxCalls int, maxBytes int64) bool {
	return l.calls < maxCalls && (l.calls == 0 || l.bytes+int64(size) <= maxBytes)
}

// share leaves room for others than the identity that asks for the most.
func (g *gate) share() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shared = true
}

// enter lets a call in until leave, or says why not.
func (g *gate) enter(owner string, size int) *Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.held[owner]
	switch {
	case !g.all.fits(size, g.maxCalls, g.maxBytes):
		return faultf(codeBusy, "busy: %d calls are running; wait for one to end and try again", g.all.calls)
	case g.shared && !held.fits(size, shareOf(g.maxCalls), g.maxBytes/4*3):
		return faultf(codeBusy, "busy: %d calls of this identity are running, which is its share; wait for one of them to end and try again", held.calls)
	}
	g.put(owner, load{held.calls + 1, held.bytes + int64(size)})
	return nil
}

func (g *gate) leave(owner string, size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.held[owner]
	g.put(owner, load{held.calls - 1, held.bytes - int64(size)})
}

// put has an identity hold now. It is called with mu held.
func (g *gate) put(owner string, now load) {
	before := g.held[owner]
	g.all.calls += now.calls - before.calls
	g.all.bytes += now.bytes - before.bytes
	if now.calls == 0 {
		delete(g.held, owner)
		return
	}
	if g.held == nil {
		g.held = map[string]load{}
	}
	g.held[owner] = now
}

// running is how many calls there are now.
func (g *gate) running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all.calls
}
