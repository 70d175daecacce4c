package httpserver

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
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

	mu     sync.Mutex
	byID   map[string]*httpSession
	owners map[string]*ownerSessions
}

// ownerSessions are the sessions of one identity: their number, and the idle ones.
type ownerSessions struct {
	n    int
	idle evictionQueue
}

// httpSession is a session of a streamable or a legacy client.
type httpSession struct {
	id        string
	owner     string
	conn      *server.Conn
	uses      int // requests and streams now; guarded by sessionTable.mu, as all below
	proven    bool
	element   *list.Element      // in its owner's queue; nil while in use
	since     time.Time          // idle since then
	endStream context.CancelFunc // ends the latest GET stream; nil: none was opened

	legacy atomic.Pointer[jsonrpc.Outbox] // the stream of a legacy client; nil for a streamable one
}

func newSessions(max int, idle time.Duration) *sessionTable {
	return &sessionTable{
		max: max, idle: idle, now: time.Now, byID: map[string]*httpSession{}, owners: map[string]*ownerSessions{},
	}
}

var errNoSession = refuse(http.StatusServiceUnavailable,
	"every session is in use; end one with DELETE, try again later, or raise --http-sessions")

// add opens a session for the connection, in use until release. If all sessions are in use it returns errNoSession.
func (s *sessionTable) add(owner string, conn *server.Conn) (*httpSession, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if len(s.byID) >= s.max && !s.evictOne() {
		return nil, errNoSession
	}
	// 130 random bits of crypto/rand.
	x := &httpSession{id: rand.Text(), owner: owner, conn: conn, uses: 1}
	s.byID[x.id] = x
	of := s.owners[owner]
	if of == nil {
		of = &ownerSessions{}
		s.owners[owner] = of
	}
	of.n++
	return x, nil
}

// use returns the session of that ID, in use until release; nil if there is none or it belongs to another identity.
func (s *sessionTable) use(id, owner string) *httpSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	x := s.byID[id]
	if x == nil || x.owner != owner {
		return nil
	}
	x.uses++
	x.proven = true
	s.unlist(x)
	return x
}

func (s *sessionTable) release(x *httpSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.uses--; x.uses > 0 || s.byID[x.id] != x {
		return
	}
	x.since = s.now()
	x.element = s.owners[x.owner].idle.add(x, x.proven)
}

// drop ends a session and its connection with cause.
func (s *sessionTable) drop(x *httpSession, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(x, cause)
}

// remove is drop for callers that hold s.mu, as those of unlist, expire and evictOne do.
func (s *sessionTable) remove(x *httpSession, cause error) {
	if s.byID[x.id] != x {
		return
	}
	s.unlist(x)
	delete(s.byID, x.id)
	of := s.owners[x.owner]
	if of.n--; of.n == 0 {
		delete(s.owners, x.owner)
	}
	x.conn.End(cause)
}

func (s *sessionTable) unlist(x *httpSession) {
	s.owners[x.owner].idle.remove(x.element)
	x.element = nil
}

// expire ends the sessions that have been idle for longer than s.idle.
func (s *sessionTable) expire() {
	last := s.now().Add(-s.idle)
	for _, of := range s.owners {
		for _, l := range []*list.List{&of.idle.fresh, &of.idle.proven} {
			for e := l.Front(); e != nil && e.Value.(*httpSession).since.Before(last); e = l.Front() {
				s.remove(e.Value.(*httpSession), errRetired)
			}
		}
	}
}

func (s *sessionTable) evictOne() bool {
	var first *list.Element
	most := 0
	for _, of := range s.owners {
		if e := of.idle.first(); e != nil && of.n > most {
			first, most = e, of.n
		}
	}
	if first != nil {
		s.remove(first.Value.(*httpSession), errRetired)
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
