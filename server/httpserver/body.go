package httpserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// freeBytes is how many bytes of each body do not count against the budget, so that ping and
// notifications/cancelled are never refused.
const freeBytes = 32 << 10

// bodyBudget bounds the memory of the bodies of each identity and of all together, in bytes, without the first
// freeBytes of each body.
type bodyBudget struct{ jsonrpc.OwnerLimiter }

func newBodyBudget(total int) *bodyBudget {
	return &bodyBudget{jsonrpc.OwnerLimiter{Total: total, PerOwner: total}}
}

// reserve adds n bytes to a body of have bytes; it returns false, and adds nothing, if that exceeds a limit.
func (b *bodyBudget) reserve(owner string, have, n int) bool {
	return b.Acquire(owner, max(have+n-freeBytes, 0)-max(have-freeBytes, 0)) == nil
}

// release removes a body of size bytes.
func (b *bodyBudget) release(owner string, size int) { b.Release(owner, max(size-freeBytes, 0)) }

// readBody reads the request body within bodyTimeout and the byte budget of all bodies. On success the caller must
// release len(body) bytes from h.bodyBytes; on a refusal nothing stays reserved.
func (h *httpServer) readBody(w http.ResponseWriter, r *http.Request, owner string) ([]byte, *refusal) {
	if full := h.arriving.Acquire(owner, 1); full != nil {
		return nil, busy("too many requests whose bodies are still arriving: %s; finish them, then try again", full)
	}
	defer h.arriving.Release(owner, 1)
	rc, end := http.NewResponseController(w), time.Now().Add(bodyTimeout)
	size := max(r.ContentLength, 0)
	body := make([]byte, 0, min(size, freeBytes)+512)
	fail := func(no *refusal) ([]byte, *refusal) {
		h.bodyBytes.release(owner, len(body))
		no.close = true
		return nil, no
	}
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, min(max(len(body), freeBytes), int(h.maxMessage)))
		}
		_ = rc.SetReadDeadline(time.Now().Add(min(h.bodyPause, time.Until(end))))
		n, err := r.Body.Read(body[len(body):min(cap(body), len(body)+freeBytes)])
		grown := h.bodyBytes.reserve(owner, len(body), n)
		body = body[:len(body)+n]
		var large *http.MaxBytesError
		switch {
		case !grown:
			body = body[:len(body)-n]
			return fail(refuse(http.StatusServiceUnavailable, "busy: too many large messages at once; try again"))
		case errors.Is(err, io.EOF):
			// A later read only detects that the client closed the connection: it needs no deadline.
			_ = rc.SetReadDeadline(time.Time{})
			return body, nil
		case errors.As(err, &large):
			return fail(tooLarge(h.maxMessage))
		case err != nil:
			return fail(h.bodyError(r, err))
		}
	}
}

// bodyError returns the refusal for a body that could not be read.
func (h *httpServer) bodyError(r *http.Request, err error) *refusal {
	var network net.Error
	if len(r.TransferEncoding) > 0 && !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(http.StatusBadRequest, "the chunked body is malformed: %s", jsonrpc.Echo(err.Error()))
	}
	return refuse(
		http.StatusBadRequest, "the message did not arrive completely; send it within %s and never pause for %s",
		bodyTimeout, h.bodyPause,
	)
}
