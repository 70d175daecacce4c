package httpserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-funnel/mcp-funnel/server/viewer"
)

// viewRoutes are served with [Options.View].
var viewRoutes = []route{
	{
		path: viewer.Base, methods: []string{http.MethodGet, http.MethodHead}, open: true, page: true,
		handle: (*httpServer).enterView,
	},
	{
		path: viewer.Base + "/", methods: []string{http.MethodGet, http.MethodHead, http.MethodPost}, open: true, page: true,
		below: true, handle: (*httpServer).serveView,
	},
}

func (h *httpServer) enterView(w http.ResponseWriter, r *http.Request, _ caller) {
	http.Redirect(w, r, viewer.Base+"/", http.StatusSeeOther)
}

// serveView serves the pages for people. A page may take as long as its reader goes on reading.
func (h *httpServer) serveView(w http.ResponseWriter, r *http.Request, _ caller) {
	const all = "\x00view" // no owner has this name
	if full := h.requests.Acquire(all, 1); full != nil {
		busy("too many requests in progress: %s; wait for one to end", full).write(w)
		return
	}
	defer h.requests.Release(all, 1)
	to := &sending{ResponseWriter: w, control: http.NewResponseController(w), pause: h.write}
	var identify viewer.Identify
	if !h.viewOnly {
		identify = func(ctx context.Context, token string) (viewer.Who, error) {
			who, no := h.identify(ctx, token)
			if no != nil {
				return viewer.Who{}, errors.New(no.text)
			}
			return viewer.Who{Owner: who.owner, Roots: who.roots}, nil
		}
	}
	h.view.ServeHTTP(to, r, identify)
}

// Unwrap lets a [http.ResponseController] find what it controls.
func (s *sending) Unwrap() http.ResponseWriter { return s.ResponseWriter }
