package httpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Causes with which a session's connection ends.
var (
	errDeleted = errors.New("the client ended its session")
	errRetired = errors.New("the session was evicted or idle for too long")
)

// sessionTable holds the open sessions, at most max. At the limit, a new session evicts an idle one of the identity
// that has the most: first those never used since they were opened, each time the longest idle. So a client that
// opens sessions without end evicts its own, and never one in use. It is safe for concurrent use.
type sessionTable struct {
	max  int
	idle time.Duration
	now  func() time.Time

	mu       sync.Mutex
	byID     map[string]*httpSession
	releases int64                       // so far
	swept    time.Time                   // when all sessions were last checked for their age
	deleted  map[string]*deletedSessions // sealed ones, by owner
}

// idleness orders what may be evicted: entries that were never used since they were opened, then the others, each time
// the longest idle first.
type idleness struct {
	proven bool  // it was used
	since  int64 // grows with each entry that becomes idle
}

// compare is negative if a is evicted before b.
func (a idleness) compare(b idleness) int {
	if a.proven != b.proven {
		return map[bool]int{true: 1, false: -1}[a.proven]
	}
	return cmp.Compare(a.since, b.since)
}

// sweepInterval is the shortest time between two checks of all sessions for their age.
const sweepInterval = time.Second

// httpSession is a session of a streamable or a legacy client.
type httpSession struct {
	id        string
	owner     string
	conn      *server.Conn
	uses      int                // requests and streams now; guarded by sessionTable.mu, as all below
	idle      idleness           // if uses is 0
	since     time.Time          // idle since then
	endStream context.CancelFunc // ends the latest GET stream; nil: none was opened

	stream atomic.Pointer[jsonrpc.Outbox] // the latest GET stream; nil: none is open
	sealed *sealed                        // the content of the ID; nil: it is random
	legacy atomic.Pointer[jsonrpc.Outbox] // the stream of a legacy client; nil for a streamable one
}

func newSessions(max int, idle time.Duration) *sessionTable {
	return &sessionTable{max: max, idle: idle, now: time.Now, byID: map[string]*httpSession{},
		deleted: map[string]*deletedSessions{}}
}

var errNoSession = refuse(http.StatusServiceUnavailable,
	"every session is in use; end one with DELETE, try again later, or raise --http-sessions")

// add opens a session for the connection, in use until release. If all sessions are in use it returns errNoSession.
func (s *sessionTable) add(owner string, conn *server.Conn) (*httpSession, *refusal) {
	return s.open(&httpSession{id: rand.Text(), owner: owner, conn: conn, uses: 1}) // 130 random bits
}

// open adds a session, or returns the open one of that ID, in use until release. It returns nil if the session comes
// from another process and was deleted here.
func (s *sessionTable) open(x *httpSession) (*httpSession, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.byID[x.id]; other != nil { // another request was faster
		other.uses++
		return other, nil
	}
	if d := s.deleted[x.owner]; x.idle.proven && d != nil && d.has(*x.sealed) {
		return nil, nil
	}
	s.expire(s.now())
	if len(s.byID) >= s.max && !s.evictOne() {
		return nil, errNoSession
	}
	s.byID[x.id] = x
	return x, nil
}

// use returns the session of that ID, in use until release; nil if there is none or it belongs to another identity.
func (s *sessionTable) use(id, owner string) *httpSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.swept) >= sweepInterval {
		s.expire(now)
	}
	x := s.byID[id]
	if x == nil || x.owner != owner {
		return nil
	}
	x.uses++
	x.idle.proven = true
	return x
}

func (s *sessionTable) release(x *httpSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.uses--
	s.releases++
	x.since, x.idle.since = s.now(), s.releases
}

// drop ends a session and its connection with cause. This process does not take it up again.
func (s *sessionTable) drop(x *httpSession, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.sealed != nil {
		s.forget(x.owner, *x.sealed)
	}
	s.remove(x, cause)
}

// forget has the ID of a session open nothing any more. The caller holds s.mu.
func (s *sessionTable) forget(owner string, was sealed) {
	old := s.now().Add(-s.idle).Unix() // IDs of that age open nothing
	maps.DeleteFunc(s.deleted, func(_ string, d *deletedSessions) bool { return d.last < old })
	if s.deleted[owner] == nil {
		s.deleted[owner] = &deletedSessions{opened: map[nonce]int64{}}
	}
	s.deleted[owner].add(was)
}

// forgetDeleted is drop of a session that another replica dropped, whether it is open here or not.
func (s *sessionTable) forgetDeleted(owner, id string, was sealed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(owner, was)
	if x := s.byID[id]; x != nil && x.owner == owner {
		s.remove(x, errDeleted)
	}
}

// remove is drop for callers that hold s.mu, as those of expire and evictOne do.
func (s *sessionTable) remove(x *httpSession, cause error) {
	if s.byID[x.id] != x {
		return
	}
	delete(s.byID, x.id)
	x.conn.End(cause)
}

// expire ends the sessions that have been idle for longer than s.idle.
func (s *sessionTable) expire(now time.Time) {
	s.swept = now
	for _, x := range s.byID {
		if x.uses == 0 && x.since.Before(now.Add(-s.idle)) {
			s.remove(x, errRetired)
		}
	}
}

// evictOne ends an idle session of the identity that has the most; it returns false if all are in use.
func (s *sessionTable) evictOne() bool {
	held := map[string]int{}
	for _, x := range s.byID {
		held[x.owner]++
	}
	var first *httpSession
	for _, x := range s.byID {
		if x.uses == 0 && (first == nil || cmp.Or(held[first.owner]-held[x.owner], x.idle.compare(first.idle)) < 0) {
			first = x
		}
	}
	if first != nil {
		s.remove(first, errRetired)
	}
	return first != nil
}

func (s *sessionTable) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// replaceStream registers a new GET stream of a session and ends the previous one, since its client has reconnected.
func (s *sessionTable) replaceStream(ctx context.Context, x *httpSession) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	s.mu.Lock()
	before := x.endStream
	x.endStream = stop
	s.mu.Unlock()
	if before != nil {
		before()
	}
	return ctx, stop
}
