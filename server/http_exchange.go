package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
)

// webChunk is how much is written before the client has to have taken some, in bytes.
const webChunk = 64 << 10

var errGone = errors.New("the request has ended")

// exchange is one POST and its answer: one JSON text, or a stream of events from the moment that
// something is to be told before the answer. All of it is written by whoever sends, so that it is on its way, in
// order, on no other's stream, when send returns; and nothing follows the answer.
type exchange struct {
	w                http.ResponseWriter
	rc               *http.ResponseController
	limit            time.Duration // for each chunk
	asJSON, asStream bool
	modern           bool // errors have a status of HTTP's
	batch            bool // where nothing is answered, nothing was asked

	answered  chan struct{}
	mu        sync.Mutex
	streaming bool
	ended     bool
	err       error

	last sync.Mutex // held to set a deadline
	over bool       // nothing more is to be written
}

func newExchange(w http.ResponseWriter, limit time.Duration, asJSON, asStream bool) *exchange {
	return &exchange{
		w: w, rc: http.NewResponseController(w), limit: limit, asJSON: asJSON, asStream: asStream, answered: make(chan struct{}),
	}
}

// send is a [Send].
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
		x.begin()
		return x.put(eventOf(message))
	case answer == nil: // the client takes no stream
		return nil
	}
	status := http.StatusOK
	if x.modern {
		status = statusOf(message)
	}
	return x.whole(status, message)
}

// refuse answers what no connection has seen.
func (x *exchange) refuse(status int, id json.RawMessage, fault *Fault) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	_ = x.whole(status, response(id, nil, fault))
}

func (x *exchange) whole(status int, message []byte) error {
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(message)))
	x.w.WriteHeader(status)
	return x.put(message)
}

// accepted answers a message that gets no answer.
func (x *exchange) accepted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.ended = true
		_ = x.extend()
		x.w.Header().Set("Content-Length", "0")
		x.w.WriteHeader(http.StatusAccepted)
		_ = x.rc.Flush()
	}
}

// unanswered ends the exchange of a call that was cancelled: its client wants no answer, and gets the end of a stream.
func (x *exchange) unanswered() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	x.ended = true
	_ = x.extend()
	if !x.streaming && (x.batch || !x.asStream) {
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	x.begin()
}

func (x *exchange) alive() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.streaming && !x.ended {
		_ = x.put(aliveComment)
	}
}

// close has nothing written any more: what is called late finds the exchange ended.
func (x *exchange) close() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
}

// open begins the stream before there is anything to tell.
func (x *exchange) open() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begin()
	_ = x.rc.Flush()
}

// begin is called with mu held, as put.
func (x *exchange) begin() {
	if x.streaming {
		return
	}
	x.streaming = true
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // else a proxy keeps events to itself
	x.w.WriteHeader(http.StatusOK)
}

// put writes a chunk at a time: a client that takes nothing for the limit is given up, one that is slow is not.
func (x *exchange) put(b []byte) error {
	for len(b) > 0 && x.err == nil {
		n := min(len(b), webChunk)
		if x.err = x.extend(); x.err != nil {
			break
		}
		if _, x.err = x.w.Write(b[:n]); x.err == nil {
			x.err = x.rc.Flush() // before the time that was given for it is over
		}
		b = b[n:]
	}
	return x.err
}

// extend gives what is written next its time: what was given before may have passed while a call ran.
func (x *exchange) extend() error {
	x.last.Lock()
	defer x.last.Unlock()
	if x.over {
		return errGone
	}
	_ = x.rc.SetWriteDeadline(time.Now().Add(x.limit))
	return nil
}

// cut gives a write that is going on a moment, and has none follow it.
func (x *exchange) cut() {
	x.last.Lock()
	defer x.last.Unlock()
	x.over = true
	_ = x.rc.SetWriteDeadline(time.Now().Add(leaveTime))
}

// Write sends what an outbox has for the stream.
func (x *exchange) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return 0, errGone
	}
	if err := x.put(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

var aliveComment = []byte(": alive\n\n")

// eventOf is a message as a server-sent event. The message ends with its only newline.
func eventOf(message []byte) []byte {
	const before = "event: message\ndata: "
	b := make([]byte, 0, len(before)+len(message)+1)
	b = append(b, before...)
	b = append(b, message...)
	return append(b, '\n')
}

// statusOf is the status that the stateless era wants of an answer, by the code of its error.
func statusOf(answer []byte) int {
	switch codeOf(answer) {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	case codeBusy, codeEnding:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// codeOf is the code of an answer of our own that is an error, else 0. A result, which may be large, is not read.
func codeOf(answer []byte) int {
	d := jsontext.NewDecoder(bytes.NewBuffer(answer))
	if _, err := d.ReadToken(); err != nil {
		return 0
	}
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil || t.String() == "result" {
			return 0
		}
		name := t.String()
		value, err := d.ReadValue()
		if err != nil {
			return 0
		}
		var fault Fault
		if name == "error" && json.Unmarshal(value, &fault) == nil {
			return fault.Code
		}
	}
	return 0
}
