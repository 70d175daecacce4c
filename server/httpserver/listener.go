package httpserver

import (
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

// SplitAddr parses the HOST:PORT, :PORT or PORT of --http; the default host is 127.0.0.1.
func SplitAddr(addr string) (host, port string, err error) {
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

	mu    sync.Mutex
	conns map[*trackedConn]bool // open connections
	waits int64                 // how often a connection began to wait
}

// trackedConn is a connection of a boundedListener. The listener's mu guards its fields.
type trackedConn struct {
	net.Conn
	listener *boundedListener
	busy     bool     // a request is in progress
	idle     idleness // if it is not busy; proven: a request on it passed the guard
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
	if len(l.conns) >= l.max {
		for t := range l.conns {
			if !t.busy && (loser == nil || t.idle.compare(loser.idle) < 0) {
				loser = t
			}
		}
		if loser == nil {
			l.mu.Unlock()
			return nil
		}
		delete(l.conns, loser)
	}
	if l.conns == nil {
		l.conns = map[*trackedConn]bool{}
	}
	l.waits++
	t := &trackedConn{Conn: c, listener: l, idle: idleness{since: l.waits}}
	l.conns[t] = true
	l.mu.Unlock()
	if loser != nil {
		_ = loser.Conn.Close()
	}
	return t
}

// Close closes the connection and frees its slot.
func (t *trackedConn) Close() error {
	t.listener.mu.Lock()
	delete(t.listener.conns, t)
	t.listener.mu.Unlock()
	return t.Conn.Close()
}

// markBusy protects the connection from being replaced while a request is in progress.
func (t *trackedConn) markBusy() {
	t.listener.mu.Lock()
	defer t.listener.mu.Unlock()
	t.busy = true
}

// markWaiting allows the connection to be replaced again; passed reports whether its request passed the guard.
func (t *trackedConn) markWaiting(passed bool) {
	t.listener.mu.Lock()
	defer t.listener.mu.Unlock()
	t.listener.waits++
	t.busy, t.idle = false, idleness{t.idle.proven || passed, t.listener.waits}
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
