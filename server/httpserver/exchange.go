package httpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// writeSize is how many bytes are written under one deadline.
const writeSize = 64 << 10

var errGone = errors.New("the request has ended")

// exchange is one POST and its answer: one JSON text, or a stream of events as soon as a message precedes the
// answer. The goroutine that calls send also writes: when send returns, the message is written, in order and on this
// request's stream. Nothing is written after the answer. It is safe for concurrent use.
type exchange struct {
	w                http.ResponseWriter
	rc               *http.ResponseController
	limit            time.Duration // write timeout of each chunk of writeSize bytes
	asJSON, asStream bool
	stateless        bool // errors get an HTTP status of their own, see statusOf
	batch            bool // if it ends without an answer, it held no request: 202
	listens          bool // a subscriptions/listen

	answered  chan struct{}
	mu        sync.Mutex
	streaming bool
	ended     bool
	err       error

	deadlineMu sync.Mutex // guards stopped and the write deadline
	stopped    bool       // no write may begin any more
}

func newExchange(w http.ResponseWriter, limit time.Duration, asJSON, asStream bool) *exchange {
	return &exchange{
		w: w, rc: http.NewResponseController(w), limit: limit, asJSON: asJSON, asStream: asStream, answered: make(chan struct{}),
	}
}

// send is the [jsonrpc.Send] of this request. Without a stream it drops every message but the answer.
func (x *exchange) send(message []byte, answer func()) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return errGone
	}
	if answer != nil {
		answer()
		x.ended = true
		defer close(x.answered)
	}
	switch {
	case x.streaming, x.asStream && (answer == nil || !x.asJSON):
		x.beginStream()
		return x.write(eventOf(message))
	case answer == nil: // the client does not accept a stream
		return nil
	}
	status := http.StatusOK
	if x.stateless {
		status = statusOf(message)
	}
	return x.writeWhole(status, message)
}

// writeFault answers a request that was refused before it reached a connection.
func (x *exchange) writeFault(status int, id json.RawMessage, fault *jsonrpc.Fault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	_ = x.writeWhole(status, jsonrpc.Response(id, nil, fault))
}

// writeOverLimit answers a call that was not started because its identity is over a limit.
func (x *exchange) writeOverLimit(id json.RawMessage, fault *jsonrpc.Fault) {
	if over, is := fault.Data.(server.OverLimit); is {
		x.w.Header().Set("Retry-After", strconv.FormatInt(over.RetryAfter, 10))
	}
	x.writeFault(http.StatusTooManyRequests, id, fault)
}

func (x *exchange) writeWhole(status int, message []byte) error {
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(message)))
	x.w.WriteHeader(status)
	return x.write(message)
}

// writeAccepted sends 202 for a message that needs no response.
func (x *exchange) writeAccepted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.ended = true
		_ = x.extendDeadline()
		x.w.Header().Set("Content-Length", "0")
		x.w.WriteHeader(http.StatusAccepted)
		_ = x.rc.Flush()
	}
}

// endUnanswered ends the exchange of a cancelled call, which gets no answer: the stream just ends. A batch without
// requests, or a client that does not accept a stream, gets 202.
func (x *exchange) endUnanswered() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	x.ended = true
	_ = x.extendDeadline()
	if !x.streaming && (x.batch || !x.asStream) {
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	x.beginStream()
}

func (x *exchange) ping() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.streaming && !x.ended {
		_ = x.write(aliveComment)
	}
}

// close ends the exchange: a late send returns errGone.
func (x *exchange) close() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
}

// openStream sends the head of the stream before the first message.
func (x *exchange) openStream() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.beginStream()
	_ = x.rc.Flush()
}

// beginStream sets the stream's headers and status once. The caller holds x.mu.
func (x *exchange) beginStream() {
	if x.streaming {
		return
	}
	x.streaming = true
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx buffers events
	x.w.WriteHeader(http.StatusOK)
}

// write writes in chunks, each with a deadline of its own: a client that reads nothing for x.limit fails, a slow one
// does not. The caller holds x.mu.
func (x *exchange) write(b []byte) error {
	for len(b) > 0 && x.err == nil {
		n := min(len(b), writeSize)
		if x.err = x.extendDeadline(); x.err != nil {
			break
		}
		if _, x.err = x.w.Write(b[:n]); x.err == nil {
			x.err = x.rc.Flush() // flush under the same deadline
		}
		b = b[n:]
	}
	return x.err
}

// extendDeadline sets the deadline of the next write: the one before may have passed while the call ran.
func (x *exchange) extendDeadline() error {
	x.deadlineMu.Lock()
	defer x.deadlineMu.Unlock()
	if x.stopped {
		return errGone
	}
	_ = x.rc.SetWriteDeadline(time.Now().Add(x.limit))
	return nil
}

// stopWrites lets a write in progress run for [server.StopGrace] more and prevents further ones.
func (x *exchange) stopWrites() {
	x.deadlineMu.Lock()
	defer x.deadlineMu.Unlock()
	x.stopped = true
	_ = x.rc.SetWriteDeadline(time.Now().Add(server.StopGrace))
}

// Write makes the exchange the writer of an outbox.
func (x *exchange) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, errGone
	}
	if err := x.write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

var aliveComment = []byte(": alive\n\n")

// eventOf formats a message as a server-sent event. The message must end with its only newline.
func eventOf(message []byte) []byte {
	const before = "event: message\ndata: "
	b := make([]byte, 0, len(before)+len(message)+1)
	b = append(b, before...)
	b = append(b, message...)
	return append(b, '\n')
}

// statusOf returns the HTTP status that the stateless protocol (2026-07-28) requires for the error code of an answer.
func statusOf(answer []byte) int {
	switch codeOf(answer) {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	case jsonrpc.CodeBusy, jsonrpc.CodeEnding:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// codeOf returns the error code of one of our answers, 0 for a result. It does not parse the result, which may be
// large: strings hold no unescaped quotes, so the first match of either key is that of the answer.
func codeOf(answer []byte) int {
	before, object, _ := bytes.Cut(answer, []byte(`,"error":`))
	var fault jsonrpc.Fault
	if bytes.Contains(before, []byte(`,"result":`)) || json.NewDecoder(bytes.NewReader(object)).Decode(&fault) != nil {
		return 0
	}
	return fault.Code
}
