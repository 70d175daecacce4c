package httpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// linkRoutes are served with [Options.Links]: links themselves, and where a caller with a token gets one.
var linkRoutes = []route{
	{
		path: links.Path, below: true, methods: []string{http.MethodGet, http.MethodHead, http.MethodPut}, open: true,
		link: true, handle: (*httpServer).serveLink,
	},
	{
		path: strings.TrimSuffix(links.Path, "/"), methods: []string{http.MethodPost}, link: true,
		handle: (*httpServer).makeLink,
	},
}

// serveLink does what a link permits. The link is checked before anything else of the store is touched.
func (h *httpServer) serveLink(w http.ResponseWriter, r *http.Request, _ caller) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	k, err := h.links.Parse(strings.TrimPrefix(r.URL.Path, links.Path))
	use, methods := h.send, "GET, HEAD"
	if k.Put {
		use, methods = h.receive, http.MethodPut
	}
	var no *refusal
	if errors.Is(err, links.ErrEnded) {
		no = refuse(http.StatusGone, "%s", err)
	} else if err != nil {
		no = refuse(http.StatusForbidden, "%s", err)
	} else if k.Put != (r.Method == http.MethodPut) {
		w.Header().Set("Allow", methods)
		no = refuse(http.StatusMethodNotAllowed, "this link is not for %s; use %s", r.Method, methods)
	} else if full := h.requests.Acquire(k.Owner, 1); full != nil {
		no = busy("too many requests in progress: %s; wait for one to end", full)
	} else {
		defer h.requests.Release(k.Owner, 1)
		h.running.Add(1)
		defer h.running.Done()
		no = use(w, r, k)
	}
	h.refuseLink(w, no, r.Method == http.MethodPut)
}

// send sends the stored bytes, or ranges of them: nothing is masked.
func (h *httpServer) send(w http.ResponseWriter, r *http.Request, k links.Link) *refusal {
	reader, err := h.server.Options().Store.Open(k.Owner, k.ID)
	if err != nil {
		return h.unreadable(k.ID, err)
	}
	defer reader.Close() //nolint:errcheck // it was only read
	o := reader.Observation
	head := w.Header()
	head.Set("Content-Type", cmp.Or(linkTypes[content.Kind(o.Stats.Kind)], "text/plain; charset=utf-8"))
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": o.File}))
	head.Set("ETag", `"`+o.SHA256+`"`)
	to := &sending{ResponseWriter: w, control: http.NewResponseController(w), pause: h.write}
	_ = to.control.SetReadDeadline(time.Time{})
	http.ServeContent(to, r, "", o.Created, io.NewSectionReader(reader, 0, reader.Size()))
	return nil
}

// linkTypes are the types by which kinds are sent that are not text: never one that a browser would run.
var linkTypes = map[content.Kind]string{content.Binary: "application/octet-stream", content.JSON: "application/json"}

// unreadable returns the refusal for an observation that cannot be opened. It does not repeat the call that made it.
func (h *httpServer) unreadable(id observations.ID, err error) *refusal {
	switch {
	case errors.Is(err, observations.ErrExpired):
		return refuse(http.StatusGone, "obs:%s has expired; its data was deleted", id)
	case errors.Is(err, observations.ErrNotFound):
		return refuse(http.StatusNotFound, "there is no obs:%s", id)
	}
	h.log.Error("an observation cannot be read", "id", id, "error", err)
	var away interface{ Short() string } // of a store that replicas share
	if errors.As(err, &away) {
		return busy("obs:%s cannot be read now: %s; try again", id, away.Short())
	}
	return refuse(http.StatusInternalServerError, "obs:%s cannot be read; the log of the server says why", id)
}

// sending is an answer of any length: its client may take as long as it reads something at least each pause.
type sending struct {
	http.ResponseWriter
	control *http.ResponseController
	pause   time.Duration
}

func (s *sending) Write(b []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.pause))
	return s.ResponseWriter.Write(b)
}

// WriteHeader sends no-store also with errors, for which ServeContent removes it.
func (s *sending) WriteHeader(status int) {
	s.Header().Set("Cache-Control", "no-store")
	s.ResponseWriter.WriteHeader(status)
}

// makeLink answers a caller who has a token with a link: to an observation of its own, or to store one.
func (h *httpServer) makeLink(w http.ResponseWriter, r *http.Request, who caller) {
	body, no := h.readBody(w, r, who.owner)
	if no == nil {
		defer h.bodyBytes.release(who.owner, len(body))
		no = h.answerLink(w, body, who.owner)
	}
	h.refuseLink(w, no, false)
}

func (h *httpServer) answerLink(w http.ResponseWriter, body []byte, owner string) *refusal {
	var want struct{ ID, For string }
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(&want)
	life, wrong := time.ParseDuration(cmp.Or(want.For, links.Life.String()))
	method, url, until, id := http.MethodPut, "", time.Time{}, observations.ID("")
	if err = cmp.Or(err, wrong); err == nil && want.ID == "" {
		url, until, err = h.links.Store(owner, life)
	} else if err == nil {
		if id, err = observations.ParseID(want.ID); err == nil {
			if _, err := h.server.Options().Store.Stat(owner, id); err != nil {
				return h.unreadable(id, err)
			}
			method = http.MethodGet
			url, until, err = h.links.Read(owner, id, life)
		}
	}
	if err != nil {
		return refuse(http.StatusBadRequest, `%s; send {} for a link to PUT to, {"id":"obs:ID"} for one that reads, `+
			`each with "for":"30m" if it shall not last %s`, jsonrpc.Echo(err.Error()), links.Life)
	}
	writeJSON(w, http.StatusOK, map[string]any{"method": method, "url": url, "until": until.UTC()})
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// refuseLink sends a refusal, nil for none. After an upload it does not wait for what is still being sent.
func (h *httpServer) refuseLink(w http.ResponseWriter, no *refusal, upload bool) {
	if no != nil {
		no.close, no.skipBody = no.close || upload, upload
		h.metrics.countRefused(no.status)
		no.write(w)
	}
}
