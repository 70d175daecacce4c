package server

import (
	"context"
	"sync"
	"sync/atomic"
)

// clientRoots holds the roots of a client and the state of the query for them.
type clientRoots struct {
	conn    *Conn
	mu      sync.Mutex
	needed  bool               // the next call must query the client
	queries int                // queries so far; only the answer to the last one counts
	pending chan struct{}      // closed when calls no longer wait for the query; nil: no call has to wait
	cancel  context.CancelFunc // cancels the last query; nil: it has ended
	dirs    []string           // absolute paths; nil: the client has no roots
	unknown error              // why the client's roots are not known; nil: they are, or it need not be asked
	warned  atomic.Bool        // the log has warned that the client's roots exclude every root
}

// current returns the known roots or why they are unknown, the channel of a pending query or nil, and whether a query is
// needed.
//
//nolint:staticcheck // the error is a part of what is known, not of this call
func (r *clientRoots) current() (dirs []string, unknown error, going <-chan struct{}, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dirs, r.unknown, r.pending, r.needed
}

// mustQuery makes the next call query the client. Until a valid answer comes, the roots are unknown.
func (r *clientRoots) mustQuery() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.needed, r.unknown = true, errRootsPending
}

// finishQuery ends query n. It stores dirs if err is nil; otherwise the roots are unknown and the next call queries
// again.
func (r *clientRoots) finishQuery(n int, dirs []string, err error) {
	defer r.unblockCalls(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queries != n { // a newer query has replaced it
		return
	}
	if r.unknown = err; err == nil {
		r.dirs = dirs
	} else {
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
