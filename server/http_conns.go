package server

import (
	"container/list"
	"context"
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
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	host, port, err = net.SplitHostPort(addr)
	if n, numErr := strconv.Atoi(port); err != nil || numErr != nil || n < 0 || n > 65535 {
		return "", "", fmt.Errorf("--http %s: write HOST:PORT, or a port alone for 127.0.0.1", echo(addr))
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return host, port, nil
}

// connections is a listener that holds at most max connections. When there are as many, the one that has
// waited longest without a request in service gives way: a connection that sends nothing, or half a head, costs others nothing.
type connections struct {
	net.Listener
	max int

	mu      sync.Mutex
	open    int
	waiting *list.List // of *tracked, the longest waiting first
}

func newConnections(l net.Listener, max int) *connections {
	return &connections{Listener: l, max: max, waiting: list.New()}
}

// tracked is one connection.
type tracked struct {
	net.Conn
	all    *connections
	place  *list.Element // among those that wait; nil while a request is served
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
		first := l.waiting.Front()
		if first == nil {
			l.mu.Unlock()
			return nil
		}
		loser = first.Value.(*tracked)
		l.forget(loser)
	}
	t := &tracked{Conn: c, all: l}
	t.place = l.waiting.PushBack(t)
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
	if t.place != nil {
		l.waiting.Remove(t.place)
		t.place = nil
	}
}

// Close closes the connection and makes room for another.
func (t *tracked) Close() error {
	t.all.mu.Lock()
	t.all.forget(t)
	t.all.mu.Unlock()
	return t.Conn.Close()
}

// serves says that a request is being served, or no longer.
func (t *tracked) serves(now bool) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	switch {
	case t.closed:
	case now && t.place != nil:
		t.all.waiting.Remove(t.place)
		t.place = nil
	case !now && t.place == nil:
		t.place = t.all.waiting.PushBack(t)
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
