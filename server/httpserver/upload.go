package httpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// uploadTimeout bounds the time to send the body of an upload.
const uploadTimeout = time.Hour

var errEmpty = errors.New("the body is empty: nothing is kept")

// receive stores the body of a request as a new observation of the link's owner, whole or not at all.
func (h *httpServer) receive(w http.ResponseWriter, r *http.Request, k links.Link) *refusal {
	if len(r.Header.Values("Content-Range")) > 0 {
		return refuse(http.StatusBadRequest, "send all of it at once, without Content-Range")
	}
	if full := h.arriving.Acquire(k.Owner, 1); full != nil {
		return busy("too many requests whose bodies are still arriving: %s; finish them, then try again", full)
	}
	defer h.arriving.Release(k.Owner, 1)
	if err := h.links.Claim(k); errors.Is(err, links.ErrUsed) {
		return refuse(http.StatusConflict, "%s", err)
	} else if err != nil {
		h.log.Error("a link could not be marked as used", "error", err)
		return busy("the link could not be marked as used; try again, or see the log of the server")
	}
	stored, no := h.keepBody(w, r, k.Owner)
	err, answer := error(nil), map[string]any{"id": observations.Prefix + stored.ObservationID}
	if no != nil {
		err = h.links.Release(k)
	} else {
		err = h.links.Stored(k, observations.ID(stored.ObservationID))
	}
	if err != nil { // the link stays used
		h.log.Error("the end of an upload could not be noted", "error", err)
	}
	if no != nil {
		return no
	}
	if stored.Redacted { // what is stored is not what was sent
		answer["masked"] = stored.Masked
	}
	writeJSON(w, http.StatusCreated, answer)
	return nil
}

// keepBody stores a body through the funnel, which counts, traces and masks it as the output of a tool.
func (h *httpServer) keepBody(
	w http.ResponseWriter, r *http.Request, owner string,
) (stored funnel.Receipt, no *refusal) {
	set := h.server.Options()
	most, control := set.Store.MaxObservation(), http.NewResponseController(w)
	body := &slowBody{http.MaxBytesReader(w, r.Body, most), control, h.bodyPause, time.Now().Add(uploadTimeout)}
	var failed error // set before Call returns: nothing cancels its context, and the times of the body end it
	keep := func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
		var n int64
		if n, failed = io.CopyBuffer(out, body, make([]byte, 256<<10)); n == 0 {
			failed = cmp.Or(failed, errEmpty)
		}
		return failed
	}
	if r.ContentLength > most {
		failed = &http.MaxBytesError{Limit: most}
	} else if answer, err := set.Funnel.Call(context.WithoutCancel(r.Context()), funnel.Request{
		Tool: tools.New(tools.Tool{Name: "put", Title: "Put", Description: "Keeps what is sent to a link."}, keep),
		Args: json.RawMessage("{}"), Who: funnel.Session{ID: "link", Owner: owner}, Keep: funnel.Always, Complete: true,
		Expected: max(r.ContentLength, 0),
	}); err == nil && len(answer.Receipts) > 0 {
		stored = answer.Receipts[0]
	}
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(failed, &large):
		no = refuse(http.StatusRequestEntityTooLarge,
			"over the limit of %d bytes of one observation (--max-observation): nothing is kept", most)
	case errors.Is(failed, errEmpty):
		no = refuse(http.StatusBadRequest, "%s", errEmpty)
	case failed != nil:
		no = h.bodyError(r, failed)
	case !stored.Kept:
		no = refuse(http.StatusInsufficientStorage, "not kept (%s)", cmp.Or(stored.NotKept, "unknown cause"))
	}
	return stored, no
}

// slowBody is the body of a request, of which some must arrive each pause and all before end.
type slowBody struct {
	io.Reader
	control *http.ResponseController
	pause   time.Duration
	end     time.Time
}

func (b *slowBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(min(b.pause, time.Until(b.end))))
	return b.Reader.Read(p)
}
