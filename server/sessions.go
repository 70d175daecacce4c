package server

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
)

// Causes with which a session's connection ends.
var (
	errDeleted = errors.New("the client ended its session")
	errRetired = errors.New("the session gave way or had been idle for too long")
)

// sessions holds those that were issued, and knows no others. Where there are as many as there may be, one
// that nobody uses at this moment gives way to the new one: of the identity that has the most, and of
// these one that was opened and never used before one that was, the longest idle first. So whoever opens
// sessions without end takes them from itself, and from nobody who uses theirs.
type sessions struct {
	max  int
	idle time.Duration
	now  func() time.Time

	mu     sync.Mutex
	byID   map[string]*httpSession
	owners map[string]*sessionsOf
}

// sessionsOf are those of one identity.
type sessionsOf struct {
	n      int
	fresh  list.List // idle and never used since they were opened, the longest idle first
	proven list.List // idle and used
}

// httpSession is one client of the sessions era, streamable or legacy.
type httpSession struct {
	id     string
	owner  string
	conn   *Conn
	uses   int // requests and streams at this moment; guarded by sessions.mu, as all below
	proven bool
	place  *list.Element      // in its owner's lists; nil while in use
	since  time.Time          // idle
	stream context.CancelFunc // ends the GET stream; nil: there was none
	legacy *carrier           // the stream of a legacy client; nil: it is none
}

func newSessions(max int, idle time.Duration) *sessions {
	return &sessions{max: max, idle: idle, now: time.Now, byID: map[string]*httpSession{}, owners: map[string]*sessionsOf{}}
}

var errNoSession = refusef(http.StatusServiceUnavailable,
	"every session is in use; end one with DELETE, or try again, or raise --http-sessions")

// add issues an ID for the connection, which is in use until release. Where it cannot, nothing gives way.
func (s *sessions) add(owner string, conn *Conn) (*httpSession, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if len(s.byID) >= s.max && !s.giveWay() {
		return nil, errNoSession
	}
	// 130 bits of the system's generator.
	x := &httpSession{id: rand.Text(), owner: owner, conn: conn, uses: 1}
	s.byID[x.id] = x
	of := s.owners[owner]
	if of == nil {
		of = &sessionsOf{}
		s.owners[owner] = of
	}
	of.n++
	return x, nil
}

// use finds a session that this identity was given, and holds it until release. Another's is not there.
func (s *sessions) use(id, owner string) *httpSession {
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

func (s *sessions) release(x *httpSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.uses--; x.uses > 0 || s.byID[x.id] != x {
		return
	}
	x.since = s.now()
	of := s.owners[x.owner]
	if x.proven {
		x.place = of.proven.PushBack(x)
	} else {
		x.place = of.fresh.PushBack(x)
	}
}

// drop ends a session.
func (s *sessions) drop(x *httpSession, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(x, cause)
}

// remove is called with mu held, as all below.
func (s *sessions) remove(x *httpSession, cause error) {
	if s.byID[x.id] != x {
		return
	}
	s.unlist(x)
	delete(s.byID, x.id)
	of := s.owners[x.owner]
	if of.n--; of.n == 0 {
		delete(s.owners, x.owner)
	}
	x.conn.end(cause)
}

func (s *sessions) unlist(x *httpSession) {
	if x.place == nil {
		return
	}
	of := s.owners[x.owner]
	if x.place.Value == any(x) {
		of.fresh.Remove(x.place) // of the two, the list that has it removes it
		of.proven.Remove(x.place)
	}
	x.place = nil
}

// expire ends what has been idle for too long.
func (s *sessions) expire() {
	last := s.now().Add(-s.idle)
	for _, of := range s.owners {
		for _, l := range []*list.List{&of.fresh, &of.proven} {
			for e := l.Front(); e != nil && e.Value.(*httpSession).since.Before(last); e = l.Front() {
				s.remove(e.Value.(*httpSession), errRetired)
			}
		}
	}
}

func (s *sessions) giveWay() bool {
	var most *sessionsOf
	for _, of := range s.owners {
		if of.fresh.Len()+of.proven.Len() > 0 && (most == nil || of.n > most.n) {
			most = of
		}
	}
	if most == nil {
		return false
	}
	e := most.fresh.Front()
	if e == nil {
		e = most.proven.Front()
	}
	s.remove(e.Value.(*httpSession), errRetired)
	return true
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// listen makes a stream the one of its session; the one before it ends: its client has come back.
func (s *sessions) listen(ctx context.Context, x *httpSession) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	s.mu.Lock()
	before := x.stream
	x.stream = stop
	s.mu.Unlock()
	if before != nil {
		before()
	}
	return ctx, stop
}

// carry names the stream of a legacy session.
func (s *sessions) carry(x *httpSession, stream *carrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.legacy = stream
}

func (s *sessions) carried(x *httpSession) *carrier {
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.legacy
}

// keyMeta is where a client of the stateless era may say which of its contexts a request belongs to.
const keyMeta = "funnel/session"

// maxKey is how long that may be, in bytes.
const maxKey = 64

// accounted is the session that calls are accounted to: the identity, and within it the client's session;
// in the stateless era, which has none, the key that the client declares, or else all of the identity's
// requests together. What is kept belongs to the identity alone.
func accounted(identity string, conn *Conn, f frame) (funnel.Session, *Fault) {
	who := funnel.Session{ID: conn.session.id, Owner: identity}
	if !f.modern() {
		return who, nil
	}
	who.ID = "stateless"
	raw := f.params["_meta"]
	if len(raw) == 0 || raw[0] != '{' {
		return who, nil
	}
	err := members(raw, func(name string, value json.RawMessage) error {
		if name != keyMeta {
			return nil
		}
		key, err := unquote(value)
		if err != nil || key == "" || len(key) > maxKey {
			return faultf(mcp.INVALID_PARAMS, "%s must be a string of 1 to %d bytes", keyMeta, maxKey)
		}
		who.ID = "key " + key
		return nil
	})
	if err != nil {
		return who, parseFault(err)
	}
	return who, nil
}
