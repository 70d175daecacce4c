package httpserver

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// splitAddr parses HOST:PORT, :PORT or PORT; the default host is 127.0.0.1.
func splitAddr(addr string) (host, port string, err error) {
	whole := addr
	if !strings.Contains(whole, ":") {
		whole = ":" + whole
	}
	host, port, err = net.SplitHostPort(whole)
	n, numErr := strconv.Atoi(port)
	switch {
	case err == nil && (errors.Is(numErr, strconv.ErrRange) || numErr == nil && (n < 0 || n > 65535)):
		return "", "", fmt.Errorf(
			"--http %s: the port is out of range; write 1 to 65535, or 0 for any free port", jsonrpc.Echo(addr),
		)
	case err != nil || numErr != nil:
		return "", "", fmt.Errorf(
			"--http %s is not an address; write HOST:PORT, or only PORT for 127.0.0.1", jsonrpc.Quoted(addr),
		)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return host, port, nil
}

// boundedListener keeps at most max connections open. At the limit, a new one replaces a connection that has no
// request in progress: first those on which no request ever passed the guard, each time the one that waits longest.
// So connections that send nothing, or half a head, cannot lock others out.
type boundedListener struct {
	net.Listener
	max int

	mu      sync.Mutex
	open    int
	waiting evictionQueue // of *trackedConn; those are proven on which a request passed the guard
}

// trackedConn is a connection of a boundedListener. The listener's mu guards its fields.
type trackedConn struct {
	net.Conn
	listener *boundedListener
	element  *list.Element // in listener.waiting; nil while a request is in progress
	proven   bool          // a request on it passed the guard
	closed   bool
}

// refuseTimeout is how long writing tooMany to a connection may take.
const refuseTimeout = 50 * time.Millisecond

const tooMany = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n\r\n" +
	"every connection is in use; close some, or try again\n"

// Accept returns the next connection that is admitted; it answers the others with 503 and closes them.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if t := l.admit(c); t != nil {
			return t, nil
		}
		_ = c.SetWriteDeadline(time.Now().Add(refuseTimeout))
		_, _ = c.Write([]byte(tooMany))
		_ = c.Close()
	}
}

func (l *boundedListener) admit(c net.Conn) *trackedConn {
	l.mu.Lock()
	var loser *trackedConn
	if l.open >= l.max {
		first := l.waiting.first()
		if first == nil {
			l.mu.Unlock()
			return nil
		}
		loser = first.Value.(*trackedConn)
		l.drop(loser)
	}
	t := &trackedConn{Conn: c, listener: l}
	l.list(t)
	l.open++
	l.mu.Unlock()
	if loser != nil {
		_ = loser.Conn.Close()
	}
	return t
}

// drop forgets a connection. The caller holds l.mu.
func (l *boundedListener) drop(t *trackedConn) {
	if t.closed {
		return
	}
	t.closed = true
	l.open--
	l.unlist(t)
}

// list and unlist add a connection to those that may be replaced, and remove it. The caller holds l.mu.
func (l *boundedListener) list(t *trackedConn) { t.element = l.waiting.add(t, t.proven) }

func (l *boundedListener) unlist(t *trackedConn) {
	l.waiting.remove(t.element)
	t.element = nil
}

// Close closes the connection and frees its slot.
func (t *trackedConn) Close() error {
	t.listener.mu.Lock()
	t.listener.drop(t)
	t.listener.mu.Unlock()
	return t.Conn.Close()
}

// markBusy protects the connection from being replaced while a request is in progress.
func (t *trackedConn) markBusy() {
	t.listener.mu.Lock()
	defer t.listener.mu.Unlock()
	t.listener.unlist(t)
}

// markWaiting allows the connection to be replaced again; passed reports whether its request passed the guard.
func (t *trackedConn) markWaiting(passed bool) {
	t.listener.mu.Lock()
	defer t.listener.mu.Unlock()
	t.proven = t.proven || passed
	if !t.closed && t.element == nil {
		t.listener.list(t)
	}
}

type trackedKey struct{}

func (l *boundedListener) context(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*trackedConn); ok {
		return context.WithValue(ctx, trackedKey{}, t)
	}
	return ctx
}

func trackedOf(ctx context.Context) *trackedConn {
	t, _ := ctx.Value(trackedKey{}).(*trackedConn)
	return t
}
