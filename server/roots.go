package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// A client's roots can only narrow what the operator granted. In the sessions era the server queries a client that
// has roots after initialization, and again when the client reports a change; calls wait for the answer. Without a valid
// answer in time, calls on files fail: a client never gets more than it asked for. An HTTP client may have no open
// stream for the query: then the first call sends it on its own stream.

const (
	rootsTimeout = 5 * time.Second  // how long calls wait for an answer at most
	lateRoots    = 30 * time.Second // how long a late answer is accepted; after that the next call queries again
	maxRoots     = 100              // of one client; more are refused
)

// errRootsPending is why roots are unknown before the client answers.
var errRootsPending = errors.New("it has not answered yet")

// declared reports whether the client declared that it has roots, and the operator lets them count.
func (r *clientRoots) declared() bool {
	return !r.conn.server.options.IgnoreRoots && r.conn.agreed.Load().capabilities.Roots != nil
}

// changed queries the client's roots, if it has any.
func (r *clientRoots) changed() {
	if !r.declared() {
		return
	}
	r.mustQuery()
	r.fetch(r.conn.SendOwn) // if another query is pending, the next call sends this one
}

// dirsNow returns the directories of the client's roots, nil if it has none, or why they are unknown. If a query is
// needed, it sends it by send. It waits for a pending query and returns the error of ctx if that ends first.
func (r *clientRoots) dirsNow(ctx context.Context, send func([]byte) error) (dirs []string, unknown, err error) {
	for mine := false; ; {
		dirs, unknown, going, due := r.current()
		if going == nil && (!due || mine) {
			return dirs, unknown, nil
		}
		if going == nil {
			going, mine = r.fetch(send)
		}
		select {
		case <-going:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// fetch starts a query unless one is pending, and reports whether it did. It returns a channel that is closed when
// calls need not wait.
func (r *clientRoots) fetch(send func([]byte) error) (going <-chan struct{}, started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending != nil {
		return r.pending, false
	}
	if r.cancel != nil {
		r.cancel() // a late answer to the last query would be outdated
	}
	ctx, drop := context.WithCancel(r.conn.ctx)
	r.queries++
	r.pending, r.needed, r.cancel, r.unknown = make(chan struct{}), false, drop, errRootsPending
	go r.query(ctx, r.queries, send)
	return r.pending, true
}

// query sends query n and stores the answer.
func (r *clientRoots) query(ctx context.Context, n int, send func([]byte) error) {
	late := time.AfterFunc(min(rootsTimeout, r.conn.server.options.AskTimeout), func() {
		r.conn.server.options.Log.Warn("the client has not reported its roots yet; calls on files are refused until it does")
		r.unblockCalls(n)
	})
	defer late.Stop()
	unsent := false
	result, err := r.conn.request(ctx, func(m []byte) error {
		err := send(m)
		unsent = errors.Is(err, ErrNoStream) || errors.Is(err, jsonrpc.ErrAnswered)
		return err
	}, mcp.MethodListRoots, nil, r.conn.server.lateRoots)
	var dirs []string
	if err == nil {
		dirs, err = dirsOf(result, func(uri, why string) {
			r.conn.server.options.Log.Warn("a root of the client is left out", "uri", content.ClipBytes(uri, 200), "cause", why)
		})
	}
	switch {
	case unsent: // most HTTP clients keep no stream open: the first call queries
		r.conn.server.options.Log.Debug("the query for the client's roots could not be sent yet", "cause", err)
	case err != nil && ctx.Err() == nil:
		r.conn.server.options.Log.Warn("the client did not report its roots; calls on files are refused", "error", err)
	}
	r.finishQuery(n, dirs, err)
}

// dirsOf returns the paths of the roots in a result of roots/list; nil if it lists none. It reports each that names no
// directory of this machine.
func dirsOf(result json.RawMessage, report func(uri, why string)) ([]string, error) {
	var list struct{ Roots []struct{ URI *string } }
	if err := json.Unmarshal(result, &list); err != nil || list.Roots == nil {
		return nil, errors.New("its answer has no list of roots")
	}
	if len(list.Roots) == 0 {
		return nil, nil
	}
	if len(list.Roots) > maxRoots {
		return nil, fmt.Errorf("it lists %d roots, over the limit of %d", len(list.Roots), maxRoots)
	}
	dirs := make([]string, 0, len(list.Roots)) // not nil: the client has roots, even if none is usable
	for i, root := range list.Roots {
		if root.URI == nil {
			return nil, fmt.Errorf("root %d of its answer has no uri", i)
		}
		dir, why := dirOf(*root.URI)
		if why != "" {
			report(*root.URI, why)
			continue
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// dirOf returns the path of a file URI, also with the name of this machine as GNU programs write it, or of an absolute
// path, which some clients send; or why it is neither.
func dirOf(uri string) (dir, why string) {
	if filepath.IsAbs(uri) {
		return filepath.Clean(uri), ""
	}
	u, err := url.Parse(uri)
	if err != nil {
		return "", "it is no URI"
	}
	host, _ := os.Hostname()
	switch {
	case !strings.EqualFold(u.Scheme, "file"):
		return "", "it is no file URI: file:///path"
	case u.Host != "" && !strings.EqualFold(u.Host, "localhost") && !strings.EqualFold(u.Host, host):
		return "", "it names another machine, " + content.ClipBytes(u.Host, 80) + "; of this one it is file:///path"
	}
	dir = filepath.FromSlash(u.Path)
	if len(dir) > 2 && dir[0] == filepath.Separator && dir[2] == ':' && filepath.Separator == '\\' {
		dir = dir[1:] // file:///C:/x
	}
	if !filepath.IsAbs(dir) {
		return "", "its path is not absolute"
	}
	return dir, ""
}

type grantKey struct{}

// WithRoots narrows the roots of the calls of ctx to dirs, absolute paths: those of the token that came with the
// request, whatever the session had before. nil narrows nothing.
func WithRoots(ctx context.Context, dirs []string) context.Context {
	if dirs == nil {
		return ctx
	}
	return context.WithValue(ctx, grantKey{}, dirs)
}

// errNoGrant is the error if no root of the token lies within a root of the server.
var errNoGrant = errors.New("no root: your token grants no directory of this server; ask its operator for an entry in roots " +
	"(obs:ID sources work without one)")

// narrowedSources narrows sources to the roots of the request's token, then to those of the client. The caller must
// call the returned function when the sources are no longer used.
func (k *call) narrowedSources(ctx context.Context, sources source.Set) (source.Set, func(), error) {
	dirs, narrows := ctx.Value(grantKey{}).([]string)
	if !narrows {
		return k.clientSources(ctx, sources)
	}
	granted, end := sources.Narrow(dirs)
	granted.Absent, granted.NoRoot = nil, errNoGrant // absent ones may be of others
	narrowed, done, err := k.clientSources(ctx, granted)
	if err != nil {
		end()
		return narrowed, done, err
	}
	return narrowed, func() { done(); end() }, nil
}

// clientSources narrows sources to the client's roots, as narrowedSources does.
func (k *call) clientSources(ctx context.Context, sources source.Set) (source.Set, func(), error) {
	if k.frame.Stateless() { // its protocol deprecates roots, and would need a query with every call
		return sources, func() {}, nil
	}
	dirs, unknown, err := k.conn.roots.dirsNow(ctx, k.notes.Forward)
	if unknown != nil {
		sources.Roots = nil
		sources.NoRoot = fmt.Errorf("no root: the client declared that it has roots, and the answer to roots/list is missing or "+
			"not valid: %w; the next call asks again. The server's option --no-client-roots grants all of --root without asking "+
			"(obs:ID sources work without a root)", unknown)
		return sources, func() {}, nil
	}
	if err != nil || dirs == nil {
		return sources, func() {}, err
	}
	sources, done := sources.Narrow(dirs)
	if errors.Is(sources.NoRoot, source.ErrNarrowed) && k.conn.roots.warned.CompareAndSwap(false, true) {
		k.conn.server.options.Log.Warn("calls on files are refused: none of the client's roots lies within --root; "+
			"start with another --root, or with --no-client-roots", "client", jsonrpc.Echo(k.conn.agreed.Load().client.Name))
	}
	return sources, done, nil
}
