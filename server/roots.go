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
	rootsTimeout = 5 * time.Second
	maxRoots     = 100 // of a client's; more are passed over
)

// clientRoots are what a client says of its roots.
type clientRoots struct {
	mu    sync.Mutex
	due   bool          // they are to be asked for
	going chan struct{} // closed when the question that is under way is done; nil: none is
	dirs  []string      // absolute paths; nil: not known, or the client has none
	told  atomic.Bool   // the operator, that they leave nothing
}

// rootsChanged asks for the client's roots, where it has some.
func (c *Conn) rootsChanged() {
	if !c.server.clientRoots || c.session.GetClientCapabilities().Roots == nil {
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

// fetchRoots asks, where nobody else does; what it returns is closed when that is done.
func (c *Conn) fetchRoots(send func([]byte) error) (going <-chan struct{}) {
	r := &c.roots
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.going == nil {
		r.going, r.due = make(chan struct{}), false
		go c.askRoots(send)
	}
	return r.going
}

// askRoots asks, once.
func (c *Conn) askRoots(send func([]byte) error) {
	unsent := false
	result, err := c.request(c.ctx, func(m []byte) error {
		err := send(m)
		unsent = errors.Is(err, errNoStream) || errors.Is(err, errAnswered)
		return err
	}, mcp.MethodListRoots, nil, rootsTimeout)
	var dirs []string
	if err == nil {
		dirs, err = dirsOf(result)
	}
	switch {
	case unsent: // as with most clients over HTTP, which keep no stream: the first call asks
		c.server.log.Debug("the client's roots are not known yet", "cause", err)
	case err != nil:
		c.server.log.Warn("the client's roots are not known", "error", err)
	}
	r := &c.roots
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.dirs = dirs
	case unsent: // the next call may have a stream
		r.due = true
	}
	close(r.going)
	r.going = nil
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
			"start with another --root, or with --no-client-roots", "client", echo(k.conn.session.GetClientInfo().Name))
	}
	return sources, done, nil
}
