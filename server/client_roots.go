package server

import (
	"context"
	"sync"
	"sync/atomic"
)

// clientRoots holds the roots of a client and the state of the query for them.
type clientRoots struct {
	mu      sync.Mutex
	needed  bool               // the next call must query the client
	queries int                // queries so far; only the answer to the last one counts
	pending chan struct{}      // closed when calls no longer wait for the query; nil: no call has to wait
	cancel  context.CancelFunc // cancels the last query; nil: it has ended
	dirs    []string           // absolute paths; nil: unknown, or the client has no roots
	warned  atomic.Bool        // the log has warned that the client's roots exclude every root
}

// current returns the known roots, the channel of a pending query or nil, and whether a query is needed.
func (r *clientRoots) current() (dirs []string, going <-chan struct{}, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dirs, r.pending, r.needed
}

// finishQuery ends query n. It stores dirs if err is nil; otherwise the next call queries again if askAgain is set.
func (r *clientRoots) finishQuery(n int, dirs []string, err error, askAgain bool) {
	defer r.unblockCalls(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queries != n { // a newer query has replaced it
		return
	}
	switch {
	case err == nil:
		r.dirs = dirs
	case askAgain:
		r.needed = true
	}
	r.cancel()
	r.cancel = nil
}

// unblockCalls releases the calls that wait for query n.
func (r *clientRoots) unblockCalls(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queries == n && r.pending != nil {
		close(r.pending)
		r.pending = nil
	}
}
