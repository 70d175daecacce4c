package httpserver

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	"github.com/mcp-funnel/mcp-funnel/server/viewer"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// route is one path. Paths without a route get 404.
type route struct {
	path    string
	methods []string
	query   string // the one query parameter it allows; "": none
	open    bool   // needs no token; its response reveals only that the server runs, unless it is a link
	below   bool   // also all paths that begin with path
	page    bool   // for a browser: its viewer knows people by a cookie
	link    bool   // people open it in a browser, and programs send it bodies of any type
	handle  func(*httpServer, http.ResponseWriter, *http.Request, caller)
}

// caller is the sender of a request that passed the guard.
type caller struct {
	owner     string
	roots     []string // of the access token; nil: all
	preflight bool     // a browser's CORS preflight: no request yet
}

// httpServer is the HTTP handler of a server.
type httpServer struct {
	server      *server.Server
	log         *slog.Logger
	maxMessage  int64
	authorize   func(http.ResponseWriter, *http.Request, route) (caller, *refusal) // guard.check
	sessions    *sessionTable
	metrics     *metrics
	bodyBytes   *bodyBudget
	unreadBytes *bodyBudget // answers that wait for a legacy client and no longer count as running calls
	streams     jsonrpc.OwnerLimiter
	requests    jsonrpc.OwnerLimiter // requests in progress, each on a connection of its own
	arriving    jsonrpc.OwnerLimiter // requests whose body is still arriving
	bodyPause   time.Duration
	sse         bool
	links       *links.Links // nil: none are served
	view        *viewer.Viewer
	viewOnly    bool
	identify    func(context.Context, string) (caller, *refusal) // whose a token is
	oauth       *oauth.Verifier
	relay       Relay  // nil: there is none
	process     string // names this process among those that the relay reaches
	write       time.Duration
	ctx         context.Context // parent of all MCP connections
	end         context.CancelCauseFunc
	running     sync.WaitGroup  // work that runs, even if its client has left
	working     atomic.Int64    // such work without that of subscriptions/listen
	drain       <-chan struct{} // closed: this server drains
	sealer      *sealer         // nil: the IDs of sessions are random
}
