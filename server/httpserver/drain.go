package httpserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// MinDrain is how long /readyz says that the server drains, even if no call runs: a balancer must have asked.
const MinDrain = 2 * time.Second

// isDraining reports whether Options.Draining is closed.
func (h *httpServer) isDraining() bool {
	select {
	case <-h.drain:
		return true
	default:
		return false
	}
}

// draining is the refusal of what a draining server no longer begins.
func (h *httpServer) draining() *refusal {
	return busy("%s is draining and ends soon; send the request again, to another replica", h.replicaName())
}

// refuseDraining answers a request that a draining server no longer begins. It returns false if the server does not
// drain.
func (h *httpServer) refuseDraining(x *exchange, f jsonrpc.Frame) bool {
	if !h.isDraining() {
		return false
	}
	x.w.Header().Set("Retry-After", "1")
	x.writeFault(http.StatusServiceUnavailable, f.ID, jsonrpc.Faultf(jsonrpc.CodeEnding, "%s", h.draining().text))
	return true
}

// replicaName names this process in errors.
func (h *httpServer) replicaName() string {
	if name := h.server.Options().Replica; name != "" {
		return "replica " + name
	}
	return "this server"
}

// waitDrained returns when no call runs, at least MinDrain after its call, or when ctx ends.
func (h *httpServer) waitDrained(ctx context.Context) {
	h.log.Info("draining", "calls", h.working.Load())
	least := time.After(MinDrain)
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for waited := false; !waited || h.working.Load() > 0; {
		select {
		case <-least:
			waited = true
		case <-poll.C:
		case <-ctx.Done():
			if n := h.working.Load(); n > 0 {
				h.log.Warn("calls still ran at the end of the drain and were cancelled", "calls", n)
			}
			return
		}
	}
}

// run runs the work of a message in a goroutine that the end of the server, and its drain, wait for.
func (h *httpServer) run(work func()) {
	h.working.Add(1)
	h.running.Go(func() {
		defer h.working.Add(-1)
		work()
	})
}

// serveReady serves /readyz: whether a balancer may send requests here.
func (h *httpServer) serveReady(w http.ResponseWriter, _ *http.Request, _ caller) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	state := "ready"
	if h.isDraining() {
		state = "draining"
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, state)
}
