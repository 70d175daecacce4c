package server

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

func isIPv4(ip netip.Addr) bool { return ip.Is4() }

// splitAddr reads HOST:PORT, :PORT or PORT; without a host it is 127.0.0.1.
func splitAddr(addr string) (host, port string, err error) {
	whole := addr
	if !strings.Contains(whole, ":") {
		whole = ":" + whole
	}
	host, port, err = net.SplitHostPort(whole)
	n, numErr := strconv.Atoi(port)
	switch {
	case err == nil && (errors.Is(numErr, strconv.ErrRange) || numErr == nil && (n < 0 || n > 65535)):
		return "", "", fmt.Errorf("--http %s: the port is out of range, write 1 to 65535, or 0 for any free one", echo(addr))
	case err != nil || numErr != nil:
		return "", "", fmt.Errorf("--http %s: write HOST:PORT, or a port alone for 127.0.0.1", quoted(addr))
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return host, port, nil
}

// connections is a listener that holds at most max connections. When there are as many, one of those that
// have no request in service gives way: of those whom the guard has let nothing through for before those
// that it has, the longest waiting first. So a connection that sends nothing, or half a head, costs others nothing.
type connections struct {
	net.Listener
	max int

	mu     sync.Mutex
	open   int
	fresh  list.List // of *tracked that wait, the longest waiting first
	proven list.List // likewise
}

func newConnections(l net.Listener, max int) *connections { return &connections{Listener: l, max: max} }

// tracked is one connection.
type tracked struct {
	net.Conn
	all    *connections
	place  *list.Element // among those that wait; nil while a request is served
	proven bool          // a request on it passed the guard
	closed bool
}

const tooMany = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n\r\n" +
	"every connection is in use; close some, or try again\n"

// Accept returns the next connection there is room for.
func (l *connections) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if t := l.admit(c); t != nil {
			return t, nil
		}
		_ = c.SetWriteDeadline(time.Now().Add(watchEvery))
		_, _ = c.Write([]byte(tooMany))
		_ = c.Close()
	}
}

func (l *connections) admit(c net.Conn) *tracked {
	l.mu.Lock()
	var loser *tracked
	if l.open >= l.max {
		first := l.fresh.Front()
		if first == nil {
			first = l.proven.Front()
		}
		if first == nil {
			l.mu.Unlock()
			return nil
		}
		loser = first.Value.(*tracked)
		l.forget(loser)
	}
	t := &tracked{Conn: c, all: l}
	l.list(t)
	l.open++
	l.mu.Unlock()
	if loser != nil {
		_ = loser.Conn.Close()
	}
	return t
}

// forget is called with mu held.
func (l *connections) forget(t *tracked) {
	if t.closed {
		return
	}
	t.closed = true
	l.open--
	l.unlist(t)
}

// list and unlist are called with mu held.
func (l *connections) list(t *tracked) {
	if t.proven {
		t.place = l.proven.PushBack(t)
	} else {
		t.place = l.fresh.PushBack(t)
	}
}

func (l *connections) unlist(t *tracked) {
	if t.place == nil {
		return
	}
	l.fresh.Remove(t.place) // of the two, the one that has it removes it
	l.proven.Remove(t.place)
	t.place = nil
}

// Close closes the connection and makes room for another.
func (t *tracked) Close() error {
	t.all.mu.Lock()
	t.all.forget(t)
	t.all.mu.Unlock()
	return t.Conn.Close()
}

// serves says that a request is being served.
func (t *tracked) serves() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.all.unlist(t)
}

// waits says that the request has been served; passed, that it was one that the guard let through.
func (t *tracked) waits(passed bool) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.proven = t.proven || passed
	if !t.closed && t.place == nil {
		t.all.list(t)
	}
}

type trackedKey struct{}

func (l *connections) context(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tracked); ok {
		return context.WithValue(ctx, trackedKey{}, t)
	}
	return ctx
}

func trackedOf(ctx context.Context) *tracked {
	t, _ := ctx.Value(trackedKey{}).(*tracked)
	return t
}
