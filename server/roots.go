package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// A client's roots can only narrow what the operator granted. They are asked for once a client of the
// sessions era that has some is initialized, and again when it says that they have changed; a call
// waits for the answer. Where none comes, what was known stays. Over HTTP a client need not keep a
// stream open for questions of ours: then the first call asks, on its own.

const (
	rootsTimeout = 5 * time.Second  // how long calls wait for an answer at most
	rootsAgain   = 30 * time.Second // how late one is still taken; then the next call asks again
	maxRoots     = 100              // of a client's; more are passed over
)

// clientRoots are what a client says of its roots.
type clientRoots struct {
	mu    sync.Mutex
	due   bool               // they are to be asked for
	asked int                // questions so far: the answer to the last one counts
	going chan struct{}      // closed when calls need wait for it no longer; nil: none does
	drop  context.CancelFunc // gives it up; nil: it is done
	dirs  []string           // absolute paths; nil: not known, or the client has none
	told  atomic.Bool        // the operator, that they leave nothing
}

// rootsChanged asks for the client's roots, where it has some.
func (c *Conn) rootsChanged() {
	if !c.server.clientRoots || c.session.said().can.Roots == nil {
		return
	}
	c.roots.mu.Lock()
	c.roots.due = true
	c.roots.mu.Unlock()
	go func() { _, _ = c.rootDirs(c.ctx, c.tell) }()
}

// rootDirs are the client's roots, asked for by send where they are due; nil: it has none.
func (c *Conn) rootDirs(ctx context.Context, send func([]byte) error) ([]string, error) {
	for mine := false; ; {
		dirs, going, due := c.roots.look()
		if going == nil && (!due || mine) {
			return dirs, nil
		}
		if going == nil {
			mine, going = true, c.fetchRoots(send)
		}
		select {
		case <-going:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *clientRoots) look() (dirs []string, going <-chan struct{}, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dirs, r.going, r.due
}

// fetchRoots asks, unless calls wait for an answer already; what it returns is closed when they need wait no longer.
func (c *Conn) fetchRoots(send func([]byte) error) (going <-chan struct{}) {
	r := &c.roots
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.going == nil {
		if r.drop != nil {
			r.drop() // a late answer would be to what has changed since
		}
		ctx, drop := context.WithCancel(c.ctx)
		r.asked++
		r.going, r.due, r.drop = make(chan struct{}), false, drop
		go c.askRoots(ctx, r.asked, send)
	}
	return r.going
}

// askRoots asks, once: the n-th question.
func (c *Conn) askRoots(ctx context.Context, n int, send func([]byte) error) {
	late := time.AfterFunc(min(rootsTimeout, c.server.askTimeout), func() {
		c.server.log.Warn("the client's roots are not known yet; calls do not wait for them any longer")
		c.roots.release(n)
	})
	defer late.Stop()
	unsent := false
	result, err := c.request(ctx, func(m []byte) error {
		err := send(m)
		unsent = errors.Is(err, errNoStream) || errors.Is(err, errAnswered)
		return err
	}, mcp.MethodListRoots, nil, c.server.rootsAgain)
	var dirs []string
	if err == nil {
		dirs, err = dirsOf(result)
	}
	switch {
	case unsent: // as with most clients over HTTP, which keep no stream: the first call asks
		c.server.log.Debug("the client's roots are not known yet", "cause", err)
	case err != nil && ctx.Err() == nil:
		c.server.log.Warn("the client's roots are not known", "error", err)
	}
	c.roots.take(n, dirs, err, unsent)
}

// take ends the n-th question.
func (r *clientRoots) take(n int, dirs []string, err error, unsent bool) {
	defer r.release(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked != n { // asked again meanwhile
		return
	}
	var silent *silenceError
	switch {
	case err == nil:
		r.dirs = dirs
	case unsent, errors.As(err, &silent): // the next call may have a stream, or the client the time
		r.due = true
	}
	r.drop()
	r.drop = nil
}

// release has no call wait for the n-th question any longer.
func (r *clientRoots) release(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == n && r.going != nil {
		close(r.going)
		r.going = nil
	}
}

// dirsOf reads an answer to roots/list: the paths of its file URIs.
func dirsOf(result json.RawMessage) ([]string, error) {
	var list struct{ Roots []struct{ URI string } }
	if err := json.Unmarshal(result, &list); err != nil {
		return nil, errNotReply
	}
	if len(list.Roots) == 0 {
		return nil, nil
	}
	dirs := make([]string, 0, min(len(list.Roots), maxRoots)) // not nil: the client has roots, if none of use
	for _, root := range list.Roots {
		if dir := dirOf(root.URI); dir != "" && len(dirs) < maxRoots {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// dirOf is the path of a file URI; "" where it is none of this machine.
func dirOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || !strings.EqualFold(u.Scheme, "file") || u.Host != "" && !strings.EqualFold(u.Host, "localhost") {
		return ""
	}
	dir := filepath.FromSlash(u.Path)
	if len(dir) > 2 && dir[0] == filepath.Separator && dir[2] == ':' && filepath.Separator == '\\' {
		dir = dir[1:] // file:///C:/x
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// scope is what a call may name. done is to be called once nothing of it is used any more.
func (k *call) scope(ctx context.Context, sources tools.Sources) (tools.Sources, func(), error) {
	if k.frame.modern() { // its revision calls roots deprecated, and would ask for them anew with every call
		return sources, func() {}, nil
	}
	dirs, err := k.conn.rootDirs(ctx, k.notes.forward)
	if err != nil || dirs == nil {
		return sources, func() {}, err
	}
	sources, done := sources.Narrow(dirs)
	if errors.Is(sources.NoRoot, tools.ErrNarrowed) && k.conn.roots.told.CompareAndSwap(false, true) {
		k.conn.server.log.Warn("calls on files are refused: none of the client's roots lies within --root; "+
			"start with another --root, or with --no-client-roots", "client", echo(k.conn.session.said().client.Name))
	}
	return sources, done, nil
}
