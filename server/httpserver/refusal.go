package httpserver

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// refusal is a request's error response, worded for the person who set up the client.
type refusal struct {
	status   int
	text     string
	code     string // of RFC 6750, for an access token; "": none was sent
	close    bool   // closes the connection
	skipBody bool   // does not wait for the rest of the request
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// busy returns a 503 that does not wait for the request's body, which may be slow to arrive.
func busy(format string, args ...any) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, text: "busy: " + fmt.Sprintf(format, args...), close: true, skipBody: true,
	}
}

func (f *refusal) write(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(headerTimeout))
	if f.skipBody { // net/http reads more of the body before it answers
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(server.StopGrace))
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

func tooLarge(max int64) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, close: true,
		text: fmt.Sprintf("the message is over the limit of %d bytes (--max-message); send less at once", max)}
}
