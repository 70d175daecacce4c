// Package httpserver serves clients over streamable HTTP and, if asked for, legacy SSE. A request goes this way:
//
//	listener       listener.go: limits connections; those without a request in progress are closed first
//	  └─► guard    guard.go: host, origin, fetch metadata, token, content type, size
//	        └─► /mcp              mcp.go: protocol, session, headers; one exchange per POST
//	            /sse, /message    sse.go: only with Options.SSE
//	            /metrics          metrics.go
//	            /healthz, /readyz (drain.go)
//	            /link             links.go, upload.go: only with Options.Links
//	            /.well-known/oauth-protected-resource: only with Options.OAuth
//
// It passes each message to [server.Conn.Accept], as stdio does. It keeps the HTTP sessions; package server keeps what
// a session has negotiated and what it runs.
package httpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Handler returns the guard with all routes behind it. [Serve] adds timeouts and a limit of connections; another
// [http.Server] must set its own.
func Handler(s *server.Server, o Options) (http.Handler, error) {
	return newHTTP(context.Background(), s, o)
}

func newHTTP(ctx context.Context, s *server.Server, o Options) (*httpServer, error) {
	set := s.Options()
	g, err := newGuard(o, set.MaxMessage)
	if err != nil {
		return nil, err
	}
	if o.Links != nil && set.Store == nil {
		return nil, errors.New("links need a store")
	}
	connections := cmp.Or(max(o.Connections, 0), DefaultConnections)
	allBodies := int(min(4*set.MaxMessage, math.MaxInt)) // bytes
	h := &httpServer{
		server: s, log: set.Log, authorize: g.check, sse: o.SSE, links: o.Links, oauth: o.OAuth, relay: o.Relay,
		view: o.View, viewOnly: o.ViewOnly, identify: g.owner,
		process:    rand.Text(),
		maxMessage: set.MaxMessage, write: set.WriteTimeout,
		sessions:  newSessions(cmp.Or(max(o.Sessions, 0), DefaultSessions), cmp.Or(max(o.Idle, 0), DefaultIdle)),
		bodyBytes: newBodyBudget(allBodies), unreadBytes: newBodyBudget(allBodies),
		drain: o.Draining,
		// Streams stay open: half of the connections remain for requests.
		streams:  jsonrpc.OwnerLimiter{PerOwner: max(connections/2, 1)},
		requests: jsonrpc.OwnerLimiter{PerOwner: connections},
		// Unfinished bodies occupy connections for up to bodyTimeout: at most a quarter for one identity.
		arriving: jsonrpc.OwnerLimiter{PerOwner: max(connections/4, minBodies)}, bodyPause: bodyPause,
	}
	if g.several() {
		h.requests.PerOwner = jsonrpc.OwnerShare(connections)
		s.ReserveForOthers()
		h.bodyBytes.PerOwner, h.unreadBytes.PerOwner = allBodies/4*3, allBodies/4*3
	}
	if h.sealer, err = newSealer(set.SessionKey, h.sessions.idle); err != nil {
		return nil, err
	}
	h.ctx, h.end = context.WithCancelCause(ctx)
	if h.relay != nil && h.sealer != nil {
		stop := h.relay.Hear(h.heard)
		context.AfterFunc(h.ctx, stop)
	}
	h.metrics = newMetrics(s.RunningCalls, h.sessions.count, set.Store, set.Trace)
	if set.Replica != "" {
		h.metrics.all.NewGauge(fmt.Sprintf("mcp_funnel_replica_info{replica=%q}", set.Replica), func() float64 { return 1 })
	}
	s.ObserveCalls(h.metrics.countCall)
	s.ObserveOverLimit(func(over server.OverLimit) { h.metrics.countOverLimit(over.Reason) })
	return h, nil
}

var (
	routes = []route{
		{path: "/mcp", methods: []string{http.MethodPost, http.MethodGet, http.MethodDelete}, handle: (*httpServer).serveMCP},
		{path: "/healthz", methods: []string{http.MethodGet, http.MethodHead}, open: true, handle: (*httpServer).serveHealth},
		{path: "/readyz", methods: []string{http.MethodGet, http.MethodHead}, open: true, handle: (*httpServer).serveReady},
		{path: "/metrics", methods: []string{http.MethodGet}, handle: (*httpServer).serveMetrics},
	}
	legacyRoutes = []route{
		{path: "/sse", methods: []string{http.MethodGet}, handle: (*httpServer).serveSSE},
		{path: "/message", methods: []string{http.MethodPost}, query: legacySession, handle: (*httpServer).serveMessage},
	}
)

func (h *httpServer) routes() []route {
	all := routes[:len(routes):len(routes)]
	if h.viewOnly {
		all = nil
	}
	if h.view != nil {
		all = append(all, viewRoutes...)
	}
	if h.sse {
		all = append(all, legacyRoutes...)
	}
	if h.links != nil {
		all = append(all, linkRoutes...)
	}
	if h.oauth != nil {
		document, paths := h.oauth.Metadata()
		serve := func(_ *httpServer, w http.ResponseWriter, _ *http.Request, _ caller) {
			writeJSON(w, http.StatusOK, document)
		}
		for _, path := range paths {
			all = append(all, route{path: path, methods: []string{http.MethodGet, http.MethodHead}, open: true, handle: serve})
		}
	}
	return all
}

// ServeHTTP lets the guard decide before anything else reads the request.
func (h *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	passed := false
	if c := trackedOf(r.Context()); c != nil {
		c.markBusy()
		defer func() { c.markWaiting(passed) }()
	}
	if len(r.TransferEncoding) > 0 {
		// net/http ignores a Content-Length beside Transfer-Encoding, but a proxy that trusts it could see a smuggled
		// second request: close the connection after this one.
		w.Header().Set("Connection", "close")
	}
	if h.isDraining() { // so that a balancer's connections go elsewhere
		w.Header().Set("Connection", "close")
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	_ = rc.SetWriteDeadline(time.Now().Add(h.write))
	all := h.routes()
	at := slices.IndexFunc(all, func(to route) bool {
		return to.path == r.URL.Path || to.below && strings.HasPrefix(r.URL.Path, to.path)
	})
	to := route{path: "?"}
	if at >= 0 {
		to = all[at]
	}
	who, no := h.authorize(w, r, to)
	switch {
	case no != nil:
		h.log.Debug("refused", "path", to.path, "status", no.status, "cause", no.text)
		h.metrics.countRefused(no.status)
		no.write(w)
	case who.preflight:
		w.WriteHeader(http.StatusNoContent)
	case at < 0:
		refuse(http.StatusNotFound, "not found; MCP is at /mcp").write(w)
	case to.open:
		to.handle(h, w, r, who)
	default:
		if full := h.requests.Acquire(who.owner, 1); full != nil {
			busy(
				"too many requests in progress: %s; wait for one to end, or raise --http-connections",
				full,
			).write(w)
			return
		}
		defer h.requests.Release(who.owner, 1)
		passed = true
		to.handle(h, w, r.WithContext(server.WithRoots(r.Context(), who.roots)), who)
	}
}

func (h *httpServer) serveHealth(w http.ResponseWriter, _ *http.Request, _ caller) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, "ok")
}

// Serve serves HTTP on l until ctx ends, or it has drained after Options.Draining. It then cancels the calls in flight,
// closes the streams and returns nil within a second, whatever calls and clients do. It closes l.
func Serve(ctx context.Context, s *server.Server, l net.Listener, o Options) error {
	h, err := newHTTP(ctx, s, o)
	if err != nil {
		_ = l.Close()
		return err
	}
	defer h.end(server.ErrEnding)
	var only http.Protocols
	only.SetHTTP1(true) // one request per connection at a time, so the limit of connections bounds requests too
	conns := &boundedListener{Listener: l, max: cmp.Or(max(o.Connections, 0), DefaultConnections)}
	srv := &http.Server{
		Handler: h, Protocols: &only,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: keepAliveTimeout, MaxHeaderBytes: maxHeader - headerSlack,
		ConnContext: conns.context,
		// The guard checks OPTIONS * too.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(h.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(conns) }()
	select {
	case err = <-served:
	case <-h.drain:
		h.waitDrained(ctx)
		err = http.ErrServerClosed
	case <-ctx.Done():
		err = http.ErrServerClosed
	}
	h.end(server.ErrEnding)
	moment, stop := context.WithTimeout(context.Background(), server.StopGrace)
	defer stop()
	_ = srv.Shutdown(moment)
	_ = srv.Close()
	idle, setIdle := context.WithCancel(moment)
	go func() {
		h.running.Wait()
		setIdle()
	}()
	if <-idle.Done(); moment.Err() != nil {
		h.log.Warn("some calls did not stop in time and were abandoned")
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Listen listens on the address of --http. Without a host that is loopback: "8080" and ":8080" mean 127.0.0.1:8080.
// Other addresses are refused unless own is true: the operator set a token. 0.0.0.0 listens on IPv4 only, [::] on
// IPv4 and IPv6. A [net.Error] comes from the network; any other error is about addr.
func Listen(ctx context.Context, addr string, own bool) (net.Listener, error) {
	host, port, err := SplitAddr(addr)
	if err != nil {
		return nil, err
	}
	// Look the name up once, so that the address checked is the address listened on.
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w", jsonrpc.Echo(addr), err)
	}
	ip := ips[0]
	if at := slices.IndexFunc(ips, netip.Addr.Is4); at >= 0 && host == "localhost" {
		ip = ips[at]
	}
	if !ip.Unmap().IsLoopback() && !own {
		return nil, fmt.Errorf("--http %s can be reached from other machines, which needs a token that you chose: "+
			"set --token-file or MCP_FUNNEL_TOKEN, or listen on 127.0.0.1", jsonrpc.Echo(addr))
	}
	network := "tcp"
	if ip = ip.Unmap(); ip.Is4() {
		network = "tcp4" // with "tcp", 0.0.0.0 would include IPv6
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, network, net.JoinHostPort(ip.String(), port))
	if err != nil {
		return nil, fmt.Errorf(
			"--http %s: %w; stop the program that listens there, or choose another address or port",
			jsonrpc.Echo(addr), err,
		)
	}
	return l, nil
}
