// Package mcpclient is the client side of MCP for servers that are other programs: it starts one, sends requests and
// passes results on as they are written.
//
//	Command.Start ── process.go: pipes, variables, the end of the whole tree; messages are lines
//	Endpoint.Open ── http.go: a request for each message ── events.go: messages are events
//	  └─ link.go: ids, responses, progress, cancellation ── receive.go: messages, and what is none
package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Error codes of JSON-RPC.
const (
	MethodNotFound = -32601
	invalidRequest = -32600
	internalError  = -32603
)

// maxFrame is the largest message that is read from a server, in bytes.
const maxFrame = 256 << 20

// Handler receives what a server sends of its own. Its functions may be nil. They must not change params.
type Handler struct {
	// Notify gets the notifications that belong to no call, one after the other. It must not wait for the server.
	Notify func(method string, params json.RawMessage)
	// Request answers a request, in a goroutine of its own. ctx ends when the server cancels the request, or ends. A
	// [*jsonrpc.Fault] is sent as it is, another error as an internal error. If it is nil, no method is found.
	Request func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// link speaks JSON-RPC with one server. It is safe for concurrent use.
type link struct {
	// transmit sends a message, or starts to. If it cannot be sent, it returns an error, or fails the call later.
	transmit func(ctx context.Context, m message) error
	closes   bool // a call of the stateless era is cancelled by the end of its context, which closes its stream
	log      *slog.Logger
	handler  Handler
	hearing  sync.Mutex // held while the handler is notified

	life context.Context // ends with the link; its cause is why
	end  context.CancelCauseFunc

	mu      sync.Mutex
	last    int64
	waiting map[string]*waiter            // by [jsonrpc.Frame.Key]
	asked   map[string]context.CancelFunc // requests of the server that have no answer yet, by Key
	odd     map[string]bool               // kinds of unusual messages that were logged
	late    int                           // functions that wait, see later
	spared  int                           // notifications that an error without an id may answer
}

// message is a message to the server.
type message struct {
	text   []byte // as it is sent, without a newline
	id     string // of a request
	method string // of a request or a notification
	params json.RawMessage
}

// waiter waits for the response to one request.
type waiter struct {
	response jsonrpc.Frame
	end      context.CancelCauseFunc      // with errAnswered after response was set
	progress func(params json.RawMessage) // of notifications with the id as their token
}

var errAnswered = errors.New("answered") // why a call ends that has a response

// newLink returns a link whose transmit is still to be set.
func newLink(log *slog.Logger, handler Handler) *link {
	l := &link{
		log: log, handler: handler, waiting: map[string]*waiter{}, asked: map[string]context.CancelFunc{},
		odd: map[string]bool{},
	}
	l.life, l.end = context.WithCancelCause(context.Background())
	return l
}

// guard runs a function that handles messages of the server. If it panics, the link ends.
func (l *link) guard(read func()) {
	var defect error
	panics.Into(&defect, read)
	if defect != nil {
		l.log.Error("reading a server's messages failed", "cause", defect)
		l.end(ErrEnded)
	}
}

// Ended returns a channel that is closed when the server has ended.
func (l *link) Ended() <-chan struct{} { return l.life.Done() }

// Call sends a request and returns the result of its response, as it was written. params is a JSON object without
// progressToken; with progress the server is asked to report it. The error is a [*jsonrpc.Fault] if the server says so.
func (l *link) Call(
	ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	if l.life.Err() != nil {
		return nil, context.Cause(l.life)
	}
	call, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(l.life, func() { end(context.Cause(l.life)) })()
	w := &waiter{end: end, progress: progress}
	l.mu.Lock()
	l.last++
	id := strconv.FormatInt(l.last, 10)
	l.waiting["n"+id] = w
	l.mu.Unlock()
	defer l.forget("n" + id)
	if progress != nil {
		var err error
		if params, err = WithMeta(params, map[string]any{"progressToken": json.RawMessage(id)}); err != nil {
			return nil, err
		}
	}
	text := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	m := message{text, id, method, params}
	if err := l.transmit(call, m); err != nil {
		return nil, err
	}
	<-call.Done()
	switch cause := context.Cause(call); {
	case cause == errAnswered: //nolint:errorlint // it is never wrapped
		return resultOf(method, w.response)
	case ctx.Err() == nil:
		return nil, cause
	}
	l.forget("n" + id)
	if m.stateless() == "" || !l.closes {
		_ = l.Notify("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%s}`, id)) // the call has ended
	}
	return nil, ctx.Err()
}

// forget removes the waiter of a request, so that no response reaches it, and returns it; nil if there is none.
func (l *link) forget(key string) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.waiting[key]
	if delete(l.waiting, key); len(l.waiting) == 0 {
		l.spared = 0
	}
	return w
}

// resultOf returns the result in a response, or the fault.
func resultOf(method string, f jsonrpc.Frame) (json.RawMessage, error) {
	if f.Error == nil || string(f.Error) == "null" && f.Result != nil { // some servers write both members
		return f.Result, nil
	}
	fault := &jsonrpc.Fault{}
	if err := json.Unmarshal(f.Error, fault); err != nil {
		return nil, fmt.Errorf("%s was answered with an error that cannot be read: %s", method,
			jsonrpc.Quoted(string(f.Error)))
	}
	return nil, fault
}

// Notify sends a notification.
func (l *link) Notify(method string, params json.RawMessage) error {
	text := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
	l.mu.Lock()
	l.spared = min(l.spared+1, len(l.waiting))
	l.mu.Unlock()
	return l.transmit(l.life, message{text: text, method: method, params: params})
}

// ErrEnded is the error of a call whose server has ended.
var ErrEnded = errors.New("the server has ended")

// progressed passes progress on to the call of its token.
func (l *link) progressed(line []byte) {
	l.mu.Lock()
	w := l.waiting[keyIn(line, "progressToken")]
	l.mu.Unlock()
	if w != nil && w.progress != nil {
		w.progress(paramsOf(line))
	}
}

// Limits on the requests of a server that are open at once; together they bound memory.
const (
	maxRequests = 64       // further ones are answered as busy; twice as many are dropped
	maxParams   = 16 << 20 // bytes of their params
)

// asks starts the answer to a request of the server.
func (l *link) asks(f jsonrpc.Frame, params json.RawMessage) {
	ctx, cancel := context.WithCancel(l.life)
	l.mu.Lock()
	defer l.mu.Unlock()
	open := len(l.asked)
	if open == 2*maxRequests || l.asked[f.Key] != nil {
		cancel()
		l.log.Warn("a request of a server was dropped: its id is in use, or too many are open", "open", open)
		return
	}
	l.asked[f.Key] = cancel
	go l.answer(ctx, f, params, open >= maxRequests)
}

// answer answers a request of the server as the handler does, unless the server has cancelled it. The link itself
// answers ping, and refuses a request that exceeds a limit.
func (l *link) answer(ctx context.Context, f jsonrpc.Frame, params json.RawMessage, busy bool) {
	var result json.RawMessage
	var err error
	switch {
	case f.Method == "ping": // its result is empty
	case l.handler.Request == nil:
		err = jsonrpc.Faultf(MethodNotFound, "%s is not relayed to the client", jsonrpc.Quoted(f.Method))
	case busy:
		err = jsonrpc.Faultf(jsonrpc.CodeBusy, "busy: %d requests of the server are open; try again later", maxRequests)
	case len(params) > maxParams:
		err = jsonrpc.BadParams("params of %d bytes are too long; send at most %d", len(params), maxParams)
	default:
		panics.Into(&err, func() { result, err = l.handler.Request(ctx, f.Method, params) })
	}
	cancelled := ctx.Err() != nil
	l.mu.Lock()
	l.asked[f.Key]()
	delete(l.asked, f.Key)
	l.mu.Unlock()
	if defect, ok := errors.AsType[*panics.Caught](err); ok {
		l.log.Error("answering a server's request failed", "method", jsonrpc.Quoted(f.Method), "cause", defect)
		err = errors.New("a defect of the client")
	}
	if len(result) == 0 {
		result = json.RawMessage("{}")
	}
	response := jsonrpc.Response(f.ID, result, nil)
	if fault, ok := errors.AsType[*jsonrpc.Fault](err); ok {
		response = jsonrpc.Response(f.ID, nil, fault)
	} else if err != nil {
		response = jsonrpc.Response(f.ID, nil, jsonrpc.Faultf(internalError, "%s", jsonrpc.Echo(err.Error())))
	}
	if cancelled {
		return
	}
	err = l.transmit(l.life, message{text: bytes.TrimSuffix(response, []byte("\n"))})
	if err != nil && l.life.Err() == nil {
		l.log.Warn("a request of a server could not be answered", "cause", err)
	}
}

// cancelled ends a request of the server that it cancels. It reports whether there is such a request.
func (l *link) cancelled(line []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	cancel := l.asked[keyIn(line, "requestId")]
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// keyIn returns the [jsonrpc.Frame.Key] of an id in the params of a message, or "".
func keyIn(line []byte, name string) string {
	var params map[string]json.RawMessage
	_ = json.Unmarshal(paramsOf(line), &params) // it was parsed before
	key, _ := jsonrpc.KeyOf(params[name])
	return key
}

// paramsOf returns the params of a message as they are written.
func paramsOf(line []byte) json.RawMessage {
	var m struct{ Params json.RawMessage }
	_ = json.Unmarshal(line, &m) // it was parsed before
	return m.Params
}

// WithMeta returns params with these members of their _meta set.
func WithMeta(params json.RawMessage, members map[string]any) (json.RawMessage, error) {
	all, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	err := json.Unmarshal(params, &all)
	if raw := all["_meta"]; raw != nil && err == nil {
		err = json.Unmarshal(raw, &meta)
	}
	for name, value := range members {
		var failed error
		meta[name], failed = json.Marshal(value)
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, err
	}
	if all["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
