package jsonrpc

import "sync"

// CallLimiter limits the calls that run concurrently over all connections, and the total bytes of their messages.
// After ReserveForOthers each identity may use only three quarters of both limits. It is safe for concurrent use.
type CallLimiter struct {
	MaxCalls int
	MaxBytes int64

	mu      sync.Mutex
	shared  bool // there is more than one identity
	all     load
	byOwner map[string]load // the key is the identity
}

// load counts running calls and the bytes of their messages.
type load struct {
	calls int
	bytes int64
}

// fits reports whether a call with a message of size bytes may start. If no call runs, a message of any size fits.
func (l load) fits(size int, maxCalls int, maxBytes int64) bool {
	return l.calls < maxCalls && (l.calls == 0 || l.bytes+int64(size) <= maxBytes)
}

// ReserveForOthers limits each identity to its share, so that no identity can block the others.
func (g *CallLimiter) ReserveForOthers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shared = true
}

// Acquire counts a call with a message of size bytes, or returns a fault if a limit is reached. The caller must call
// Release with the same owner and size when the call ends.
func (g *CallLimiter) Acquire(owner string, size int) *Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.byOwner[owner]
	switch {
	case !g.all.fits(size, g.MaxCalls, g.MaxBytes):
		return Faultf(CodeBusy, "busy: %d calls are running; wait for one to end and try again", g.all.calls)
	case g.shared && !held.fits(size, OwnerShare(g.MaxCalls), g.MaxBytes/4*3):
		return Faultf(
			CodeBusy,
			"busy: %d calls of this identity are running, which is its limit; wait for one of them to end and try again",
			held.calls,
		)
	}
	g.setLoad(owner, load{held.calls + 1, held.bytes + int64(size)})
	return nil
}

// Release ends what Acquire counted.
func (g *CallLimiter) Release(owner string, size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := g.byOwner[owner]
	g.setLoad(owner, load{held.calls - 1, held.bytes - int64(size)})
}

// setLoad replaces the load of an identity and adjusts the total. The caller must hold mu.
func (g *CallLimiter) setLoad(owner string, now load) {
	before := g.byOwner[owner]
	g.all.calls += now.calls - before.calls
	g.all.bytes += now.bytes - before.bytes
	if now.calls == 0 {
		delete(g.byOwner, owner)
		return
	}
	if g.byOwner == nil {
		g.byOwner = map[string]load{}
	}
	g.byOwner[owner] = now
}

// Running returns the number of running calls.
func (g *CallLimiter) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all.calls
}
