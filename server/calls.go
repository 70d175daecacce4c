package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/stack"
)

// lateGrace is how long after its deadline a call may still answer for itself. Then it is answered
// for, and what ignores its context keeps its place at the gate until it ends.
const lateGrace = 400 * time.Millisecond

// Causes with which a call's context ends.
var (
	errCancelled = errors.New("cancelled by the client")
	errEnding    = errors.New("the server is ending")
)

// Conn is one client: what it negotiated, who it is, and which of its calls are in flight. The
// transports feed it. It is safe for concurrent use, but messages are taken in the order of accept.
type Conn struct {
	server  *Server
	session *session
	who     funnel.Session
	ctx     context.Context // ends with the connection
	end     context.CancelCauseFunc
	ready   atomic.Bool // a client of the sessions era has said that it is initialized
	own     watcher     // its
	roots   clientRoots // likewise

	mu      sync.Mutex
	calls   map[string]*call        // open ones by id
	open    int                     // taken and not yet answered
	running int                     // calls whose work goes on, answered or not
	changed chan struct{}           // closed and made anew when one of the two falls
	asked   map[string]chan<- frame // requests of ours that wait for their answer, by id
	asks    int64                   // requests of ours so far
	streams []*stream               // what carries messages that belong to no call; the last one is used
	listens int                     // subscriptions/listen that are open
}

// call is one request from its acceptance to its answer.
type call struct {
	conn     *Conn
	frame    frame
	send     Send
	notes    *notifier
	declared *mcp.ClientCapabilities // by the request itself, in the stateless era
	cancel   context.CancelCauseFunc
	unhook   func() bool            // from the end of the connection
	work     int                    // goroutines that work for it; guarded by conn.mu
	settled  bool                   // answered, or cancelled; guarded by conn.mu
	ended    bool                   // likewise, and its answer is out; guarded by conn.mu
	listens  bool                   // a subscriptions/listen: nobody waits for its answer
	allowed  mcp.SubscriptionFilter // of it: what this server can serve
}

type callKey struct{}

// callOf is the call that a handler works for.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// start takes a call in, or says why not.
func (c *Conn) start(ctx context.Context, f frame, send Send) (context.Context, *call, *Fault) {
	if c.ctx.Err() != nil {
		return nil, nil, faultf(codeEnding, "%s: the server is ending", f.method)
	}
	if fault := c.server.gate.enter(c.who.Owner, f.size); fault != nil {
		return nil, nil, fault
	}
	k := c.newCall(f, send)
	ctx, k.cancel = context.WithCancelCause(ctx)
	k.unhook = context.AfterFunc(c.ctx, func() { k.cancel(errEnding) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[f.key] = k
	c.open++
	c.running++
	k.work++
	return ctx, k, nil
}

// join says that one more goroutine works for the call; false where the call is over. Until all have
// left, the call keeps its place at the gate, answered or not, so that tools which ignore their
// context cannot pile up.
func (k *call) join() bool {
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	if k.work == 0 {
		return false
	}
	k.work++
	return true
}

func (k *call) left() {
	k.conn.fell(func(c *Conn) {
		if k.work--; k.work > 0 {
			return
		}
		if c.running--; !k.listens {
			c.server.gate.leave(c.who.Owner, k.frame.size)
		}
	})
}

func (c *Conn) newCall(f frame, send Send) *call {
	k := &call{conn: c, frame: f, send: send}
	k.notes = &notifier{send: send, token: f.token, last: -1}
	if f.modern() {
		k.notes.words, k.notes.level = true, mcp.LoggingLevel(f.level)
	} else {
		k.notes.words, k.notes.level = c.session.said().protocol >= mcp.ProtocolVersion20250326, c.session.logLevel()
	}
	return k
}

// run does the work of a call that start took in, and answers it. Where another does so, it returns no sooner than that
// answer is out: with it, what the answer goes by may end.
func (k *call) run(ctx context.Context) {
	stack.Grow()
	s := k.conn.server
	ctx, stop := context.WithTimeout(ctx, s.timeout)
	k.notes.start()
	late := time.AfterFunc(s.timeout+lateGrace, func() {
		s.log.Warn("call is overdue and was answered for", "method", k.frame.method, "tool", k.frame.text("name"))
		k.notes.log(mcp.LoggingLevelWarning, "server", fmt.Sprintf("%s: overdue, answered for", echo(k.frame.method)))
		k.answer(s.overdue(k.frame))
	})
	left := sync.OnceFunc(k.left)
	defer func() {
		late.Stop()
		k.unhook()
		stop()
		k.cancel(nil)
		left()
	}()
	result, fault := s.dispatch(ctx, k)
	k.answerFrom(result, fault, left)
	left()
	k.conn.wait(context.Background(), func(*Conn) int { // which is not long: writes have a time-out
		if k.ended {
			return 0
		}
		return 1
	})
}

// answer sends the answer, unless the call was answered or cancelled before.
func (k *call) answer(result any, fault *Fault) { k.answerFrom(result, fault, func() {}) }

// answerFrom is answer by one of those who work for the call, who has left it when the client reads the answer.
func (k *call) answerFrom(result any, fault *Fault, left func()) {
	k.notes.close()
	if !k.settle() {
		return
	}
	_ = k.send(response(k.frame.id, result, fault), left)
	k.closed()
}

// closed counts the call out of those that wait for an answer.
func (k *call) closed() {
	k.conn.fell(func(c *Conn) {
		k.ended = true
		if !k.listens {
			c.open--
		}
	})
}

// settle says whether the caller is the one to end the call.
func (k *call) settle() bool {
	c := k.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.settled {
		return false
	}
	k.settled = true
	if c.calls[k.frame.key] == k {
		delete(c.calls, k.frame.key)
	}
	return true
}

// cancelID ends the call of that id: its context at once, and it gets no answer. Unknown ids and
// calls that were answered meanwhile are nobody's fault.
func (c *Conn) cancelID(key string) {
	c.mu.Lock()
	k := c.calls[key]
	c.mu.Unlock()
	if k != nil {
		k.abandon()
	}
}

// abandon is cancelID for this very call, whose id may be another's by now.
func (k *call) abandon() {
	if k.settle() {
		k.cancel(errCancelled)
		k.notes.hush()
		k.closed()
	}
}

func (c *Conn) inFlight(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key] != nil
}

// fell changes a count and wakes those who wait for it.
func (c *Conn) fell(change func(*Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
	close(c.changed)
	c.changed = make(chan struct{})
}

// wait returns true once count is zero, false when ctx ends before.
func (c *Conn) wait(ctx context.Context, count func(*Conn) int) bool {
	for {
		c.mu.Lock()
		n, changed := count(c), c.changed
		c.mu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// giveUp answers every open call with a fault and tells its work to stop.
func (c *Conn) giveUp(fault *Fault) {
	c.mu.Lock()
	open := make([]*call, 0, len(c.calls))
	for _, k := range c.calls {
		if !k.listens {
			open = append(open, k)
		}
	}
	c.mu.Unlock()
	for _, k := range open {
		k.cancel(errEnding)
		k.answer(nil, fault)
	}
}
