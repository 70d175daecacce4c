package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// Streamable HTTP and legacy SSE. A request goes this way:
//
//	listener          http_conns.go: at most so many connections, half-open ones give way
//	  └─► guard       guard.go: host, origin, fetch metadata, token, content type, size
//	        └─► /mcp              http_mcp.go: era, session, headers; one exchange a POST
//	            /sse, /message    sse.go: only where asked for
//	            /metrics          metrics.go
//	            /healthz
//
// Every message ends at [Conn.accept], as those of stdio do.

// Defaults of [HTTPOptions].
const (
	DefaultHTTPConnections = 1024
	DefaultHTTPSessions    = 1024
	DefaultHTTPIdle        = 12 * time.Hour
)

const (
	// headerTime is how long a client may take to send the head of a request.
	headerTime = 10 * time.Second
	// bodyTime is how long it may take to send the body.
	bodyTime = 60 * time.Second
	// bodySilence is how long none of the body may come.
	bodySilence = 10 * time.Second
	// fewBodies is how many bodies of one identity may be arriving at once however few connections there may be.
	fewBodies = 16
	// keepTime is how long a connection may wait for its next request.
	keepTime = 2 * time.Minute
	// maxHeader bounds the head of a request, in bytes. net/http adds slack of its own (4096 bytes) to what it is told.
	maxHeader   = 16 << 10
	headerSlack = 4 << 10
	// aliveEvery is how often a silent stream says that it is alive, so that nothing between closes it and
	// a client that went away is noticed.
	aliveEvery = 25 * time.Second
)

// HTTPOptions say who may come in over HTTP, and how much of everything there may be. Zero limits mean the defaults.
type HTTPOptions struct {
	Identities map[string]string // bearer token → owner of observations; only hashes of the tokens are kept
	NoToken    bool              // takes every caller as observations.Local; for fixture servers
	SSE        bool              // also /sse and /message, of protocol 2024-11-05
	Hosts      []string          // names in the Host header that are taken beside the loopback names, with or without a port
	Origins    []string          // web origins that are taken beside the loopback names, as browsers send them

	Connections  int           // at once
	Sessions     int           // kept at once
	Idle         time.Duration // after which a session that nobody uses ends
	WriteTimeout time.Duration // how long a client may take for the next 64 KiB; that of the server by default
}

// Check says what of the options is wrong, before anything is listened on.
func (o HTTPOptions) Check() error {
	_, err := newGuard(o, 0)
	return err
}

// web is the server's face to HTTP.
type web struct {
	server   *Server
	log      *slog.Logger
	check    func(http.ResponseWriter, *http.Request, route) (caller, *refusal) // the guard's
	sessions *sessions
	metrics  *metrics
	bodies   bodies
	unread   bodies // answers that wait for a legacy client without the place of their call
	streams  shares
	served   shares // requests, each of which has a connection to itself
	arriving shares // those whose body is not there yet
	silence  time.Duration
	sse      bool
	write    time.Duration
	ctx      context.Context // of all connections
	end      context.CancelCauseFunc
	works    sync.WaitGroup // calls that go on, answered or not
}

// Handler is the HTTP face: the guard, and behind it every route there is. [Server.ServeListener] puts a
// bounded server around it; another one has to bring its own time-outs.
func (s *Server) Handler(o HTTPOptions) (http.Handler, error) {
	return s.newWeb(context.Background(), o)
}

func (s *Server) newWeb(ctx context.Context, o HTTPOptions) (*web, error) {
	g, err := newGuard(o, s.maxMessage)
	if err != nil {
		return nil, err
	}
	connections := orDefault(o.Connections, DefaultHTTPConnections)
	h := &web{
		server: s, log: s.log, check: g.check, sse: o.SSE, write: orDefault(o.WriteTimeout, s.writeDeadline),
		sessions: newSessions(orDefault(o.Sessions, DefaultHTTPSessions), orDefault(o.Idle, DefaultHTTPIdle)),
		bodies:   bodies{all: budget{max: 4 * s.maxMessage}}, unread: bodies{all: budget{max: 4 * s.maxMessage}},
		// One identity's streams, which stay, leave room for the requests of all.
		streams: shares{each: max(connections/2, 1)},
		served:  shares{each: connections},
		// A client that sends half a message takes a connection for as long as it likes.
		arriving: shares{each: max(connections/4, fewBodies)}, silence: bodySilence,
	}
	if g.several() {
		h.served.each = shareOf(connections)
		s.gate.share()
		h.bodies.share(g.tokens)
		h.unread.share(g.tokens)
		s.listens.allow(shareOf(maxAllListens))
	}
	h.ctx, h.end = context.WithCancelCause(ctx)
	h.metrics = newMetrics(h)
	s.metrics.Store(h.metrics)
	return h, nil
}

// route is one path. Nothing is served that is not in the list.
type route struct {
	path    string
	methods []string
	query   string // the one parameter it takes
	open    bool   // answers without a token, and then says no more than that it is there
	handle  func(*web, http.ResponseWriter, *http.Request, caller)
}

var (
	routes = []route{
		{path: "/mcp", methods: []string{http.MethodPost, http.MethodGet, http.MethodDelete}, handle: (*web).serveMCP},
		{path: "/healthz", methods: []string{http.MethodGet}, open: true, handle: (*web).serveHealth},
		{path: "/metrics", methods: []string{http.MethodGet}, handle: (*web).serveMetrics},
	}
	legacyRoutes = []route{
		{path: "/sse", methods: []string{http.MethodGet}, handle: (*web).serveSSE},
		{path: "/message", methods: []string{http.MethodPost}, query: legacySession, handle: (*web).serveMessage},
	}
)

func (h *web) routes() []route {
	if h.sse {
		return append(slices.Clone(routes), legacyRoutes...)
	}
	return routes
}

// ServeHTTP has the guard decide before anything else is looked at.
func (h *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	passed := false
	if c := trackedOf(r.Context()); c != nil {
		c.serves()
		defer func() { c.waits(passed) }()
	}
	if len(r.TransferEncoding) > 0 {
		// net/http drops a Content-Length beside it. Who goes by that one may see a second request in what follows:
		// none is read.
		w.Header().Set("Connection", "close")
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
	_ = rc.SetWriteDeadline(time.Now().Add(h.write))
	all := h.routes()
	at := slices.IndexFunc(all, func(to route) bool { return to.path == r.URL.Path })
	to := route{path: "?"}
	if at >= 0 {
		to = all[at]
	}
	who, no := h.check(w, r, to)
	switch {
	case no != nil:
		h.log.Debug("refused", "path", to.path, "status", no.status, "cause", no.text)
		h.metrics.refuse(no.status)
		no.write(w)
	case who.preflight:
		w.WriteHeader(http.StatusNoContent)
	case at < 0:
		refusef(http.StatusNotFound, "there is nothing here; MCP is at /mcp").write(w)
	case to.open:
		to.handle(h, w, r, who)
	default:
		if full := h.served.enter(who.owner); full != nil {
			busy("the requests in service, %s, are its share of the connections; wait for one to end, or raise --http-connections", full).write(w)
			return
		}
		defer h.served.leave(who.owner)
		passed = true
		to.handle(h, w, r, who)
	}
}

// refusal is why a request is not served, in words for whoever set it up.
type refusal struct {
	status int
	text   string
	close  bool // the connection with it
	hurry  bool // without the rest of the request
}

func refusef(status int, format string, args ...any) *refusal {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// busy refuses a request whose body may be long in coming: it is not waited for.
func busy(format string, args ...any) *refusal {
	return &refusal{status: http.StatusServiceUnavailable, text: "busy: " + fmt.Sprintf(format, args...), close: true, hurry: true}
}

func (f *refusal) write(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(headerTime))
	if f.hurry { // net/http reads on before it answers
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(leaveTime))
	}
	h := w.Header()
	if f.close {
		h.Set("Connection", "close")
	}
	if f.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(f.status)
	_, _ = fmt.Fprintln(w, content.Visible(f.text, false))
}

func (h *web) serveHealth(w http.ResponseWriter, _ *http.Request, _ caller) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, "ok")
}

// ServeListener serves HTTP on l until ctx ends. It then returns nil within a second, whatever calls and
// clients do: calls in flight are told to stop, and streams are closed. It closes l.
func (s *Server) ServeListener(ctx context.Context, l net.Listener, o HTTPOptions) error {
	h, err := s.newWeb(ctx, o)
	if err != nil {
		_ = l.Close()
		return err
	}
	defer h.end(errEnding)
	var only http.Protocols
	only.SetHTTP1(true) // one request a connection at a time: what is bounded is the connections
	conns := newConnections(l, orDefault(o.Connections, DefaultHTTPConnections))
	srv := &http.Server{
		Handler: h, Protocols: &only,
		ReadHeaderTimeout: headerTime, IdleTimeout: keepTime, MaxHeaderBytes: maxHeader - headerSlack,
		ConnContext: conns.context,
		// OPTIONS * is for the guard too.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(conns) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = http.ErrServerClosed
	}
	h.end(errEnding)
	moment, stop := context.WithTimeout(context.Background(), leaveTime)
	defer stop()
	_ = srv.Shutdown(moment)
	_ = srv.Close()
	if !h.idle(moment) {
		s.log.Warn("calls that did not stop were left behind")
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// idle waits until no call goes on, or ctx ends.
func (h *web) idle(ctx context.Context) bool {
	done := make(chan struct{})
	go func() {
		h.works.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Listen opens the address of --http. Without a host it is the loopback one: "8080" and ":8080" are
// 127.0.0.1:8080. Any other than a loopback address is refused unless own says that the operator set a token. An IPv4
// address is listened on by IPv4 alone; [::] is all addresses of both. An error that is a [net.Error] is of the
// network; any other one of what was asked.
func Listen(ctx context.Context, addr string, own bool) (net.Listener, error) {
	host, port, err := splitAddr(addr)
	if err != nil {
		return nil, err
	}
	// The name is looked up once: what is checked is what is listened on.
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w", echo(addr), err)
	}
	ip := ips[0]
	if at := slices.IndexFunc(ips, isIPv4); at >= 0 && host == "localhost" {
		ip = ips[at]
	}
	if !ip.Unmap().IsLoopback() && !own {
		return nil, fmt.Errorf("--http %s can be reached from other machines, which needs a token that you chose: "+
			"set --token-file or MCP_FUNNEL_TOKEN, or listen on 127.0.0.1", echo(addr))
	}
	network := "tcp"
	if ip = ip.Unmap(); ip.Is4() {
		network = "tcp4" // 0.0.0.0 would be every IPv6 address too
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, network, net.JoinHostPort(ip.String(), port))
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w; end what listens there, or choose another address or port", echo(addr), err)
	}
	return l, nil
}
