package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// These errors are the causes of a call's cancelled context.
var (
	ErrCancelled = errors.New("cancelled by the client")
	ErrEnding    = errors.New("the server is ending")
)

// Conn is the connection of one client: its negotiated protocol, its identity and its calls in flight. Transports
// pass it messages. It is safe for concurrent use, but [Conn.Accept] must get messages in the order of their arrival.
type Conn struct {
	server     *Server
	id         string // of the session
	account    funnel.Session
	ctx        context.Context // ends with the connection
	end        context.CancelCauseFunc
	agreed     atomic.Pointer[handshake]        // used in the sessions era only, as the five below
	logLevel   atomic.Pointer[mcp.LoggingLevel] // the client gets log messages from this level on
	ready      atomic.Bool                      // the client has sent notifications/initialized
	notice     atomic.Pointer[string]           // of Resume, for the client; nil: none, or it was sent
	subscriber subscriber
	roots      clientRoots
	listed     sync.Once // the cost of the tool list is in the trace
	servers    sync.Map  // names of upstream servers: the cost of their tools is in the trace

	mu         sync.Mutex
	calls      map[string]*call                // open calls by jsonrpc.Frame.Key
	unanswered int                             // calls and batches accepted and not yet answered
	running    int                             // calls with a running worker, answered or not
	changed    chan struct{}                   // closed and replaced by updateCounts
	awaiting   map[string]chan<- jsonrpc.Frame // open requests to the client, by key of their id
	silent     bool                            // the client can send nothing any more
	requests   int64                           // requests sent to the client so far
	streams    []*jsonrpc.Send                 // for messages that belong to no call; the last one is used
	listens    int                             // open subscriptions/listen
}

// handshake is what initialize negotiated with a client of the sessions era.
type handshake struct {
	protocol     string // "" before initialize
	client       mcp.Implementation
	capabilities mcp.ClientCapabilities
	raw          json.RawMessage // the capabilities, as the client wrote them
}

// Connect returns the connection of a new client. It lasts until ctx ends or [Conn.End] is called.
func (s *Server) Connect(ctx context.Context) *Conn { return s.ConnectAs(ctx, rand.Text()) }

// Identify sets the identity and the session to which the client's calls belong. The stateless era has no sessions:
// its calls belong to the key that message f declares in _meta, or else to one session of the whole identity.
// Observations belong to the identity alone. Identify must be called before the first message is accepted.
func (c *Conn) Identify(owner string, f jsonrpc.Frame) *jsonrpc.Fault {
	c.account = funnel.Session{ID: c.id, Owner: owner}
	if !f.Stateless() {
		return nil
	}
	c.account.ID = "stateless"
	raw := f.Meta(sessionMetaKey)
	if raw == nil {
		return nil
	}
	key, err := jsonrpc.Unquote(raw)
	if err != nil || key == "" || len(key) > maxSessionKey {
		return jsonrpc.BadParams("%s must be a string of 1 to %d bytes", sessionMetaKey, maxSessionKey)
	}
	c.account.ID = "key " + key
	return nil
}

// sessionMetaKey is the member of _meta in which a client of the stateless era may name the session of a request;
// maxSessionKey is its maximum length in bytes.
const (
	sessionMetaKey = "funnel/session"
	maxSessionKey  = 64
)

// Initialized reports whether the client has sent initialize.
func (c *Conn) Initialized() bool { return c.agreed.Load().protocol != "" }

// Context returns a context that ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// End ends the connection and cancels its calls with this cause. It does not wait for them.
func (c *Conn) End(cause error) { c.end(cause) }

// StopGrace is the time that cancelled calls get to clean up before the server abandons them. All tools stop within
// a few ms.
const StopGrace = 200 * time.Millisecond

// Stop ends the connection and waits up to [StopGrace] for its calls to stop.
func (c *Conn) Stop() {
	c.end(ErrEnding)
	moment, stop := context.WithTimeout(context.Background(), StopGrace)
	defer stop()
	if !c.waitUntil(moment, func(c *Conn) bool { return c.running == 0 }) {
		c.server.options.Log.Warn("some calls did not stop in time and were abandoned")
	}
}

// WaitAnswered waits until every request is answered. It returns false if ctx ends first.
func (c *Conn) WaitAnswered(ctx context.Context) bool {
	return c.waitUntil(ctx, func(c *Conn) bool { return c.unanswered == 0 })
}

// updateCounts calls change with mu held, then wakes the goroutines in waitUntil.
func (c *Conn) updateCounts(change func(*Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
	close(c.changed)
	c.changed = make(chan struct{})
}

// waitUntil waits until done, which is called with mu held, returns true. It returns false if ctx ends first.
func (c *Conn) waitUntil(ctx context.Context, done func(*Conn) bool) bool {
	for {
		c.mu.Lock()
		isDone, changed := done(c), c.changed
		c.mu.Unlock()
		if isDone {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// call is one request, from acceptance to the end of its last worker.
type call struct {
	conn       *Conn
	frame      jsonrpc.Frame
	send       jsonrpc.Send
	notes      *jsonrpc.Notifier
	declared   *mcp.ClientCapabilities // declared by the request itself, in the stateless era
	cancel     context.CancelCauseFunc
	detach     func() bool            // unlinks cancel from the end of the connection
	workers    int                    // goroutines that work for the call; guarded by conn.mu
	claimed    bool                   // the call is being answered or was cancelled; guarded by conn.mu
	answerSent bool                   // the answer was sent, or none will be; guarded by conn.mu
	isListen   bool                   // a subscriptions/listen, which does not count as unanswered
	filter     mcp.SubscriptionFilter // for subscriptions/listen: the part that this server can serve
	limit      *jsonrpc.CallLimiter   // that counts it
	opened     *upstreams             // the upstream servers that it uses; nil: none
}

type callKey struct{}

// callOf returns the call of a handler's context.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// addWorker counts one more goroutine that works for the call; it returns false if the call has ended. The call keeps
// its slot until all workers have ended, answered or not, so that tools that ignore their context cannot pile up.
func (k *call) addWorker() bool {
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	if k.workers == 0 {
		return false
	}
	k.workers++
	return true
}

func (k *call) removeWorker() {
	k.conn.updateCounts(func(c *Conn) {
		if k.workers--; k.workers > 0 {
			return
		}
		if c.running--; !k.isListen {
			k.limit.Release(c.account.Owner, k.frame.Size)
			c.server.identityLimit.release(c.account.Owner, k.frame.Method)
		}
	})
}

// ErrNoStream is the error of [Conn.SendOwn] if no stream is open.
var ErrNoStream = errors.New("the client has no open stream for messages of the server")

// Listen adds a stream for messages that belong to no call, until stop is called: notifications, and requests to
// the client, whose responses go to [Conn.Accept]. Stdio is such a stream, and the GET stream of streamable HTTP. If
// there are several, only the last one gets a message; if its send fails, the one before it is tried. Goroutines of the
// connection call send, which may block.
func (c *Conn) Listen(send jsonrpc.Send) (stop func()) {
	c.updateCounts(func(c *Conn) { c.streams = append(c.streams, &send) })
	c.subscriber.enqueue(false) // sends the changes that could not be sent before
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams = slices.DeleteFunc(c.streams, func(s *jsonrpc.Send) bool { return s == &send })
	}
}

// SendOwn sends a message that belongs to no call. It returns an error if no open stream takes it.
func (c *Conn) SendOwn(message []byte) error {
	c.mu.Lock()
	streams := slices.Clone(c.streams)
	c.mu.Unlock()
	err := ErrNoStream
	for _, send := range slices.Backward(streams) {
		if err = (*send)(message, nil); err == nil {
			return nil
		}
	}
	return err
}
