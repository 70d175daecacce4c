// Package mcpclient is the client side of MCP for servers that are other programs: it starts one, sends requests and
// passes results on as they are written.
//
//	Command.Start ── process.go: pipes, variables, the end of the whole tree
//	  └─ link.go: ids, responses, progress, cancellation; what is no message is dropped
package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Error codes of JSON-RPC.
const (
	MethodNotFound = -32601
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

// link speaks JSON-RPC with one server over two streams. It is safe for concurrent use.
type link struct {
	out     io.WriteCloser
	log     *slog.Logger
	handler Handler

	life    context.Context // ends with the link; its cause is why
	end     context.CancelCauseFunc
	writing chan struct{} // holds one token: who takes it writes a message
	answers chan []byte   // of the link itself to requests of the server

	mu      sync.Mutex
	last    int64
	waiting map[string]*waiter            // by [jsonrpc.Frame.Key]
	asked   map[string]context.CancelFunc // requests of the server that the handler answers, by Key
	noise   int                           // lines that were no messages
}

// waiter waits for the response to one request.
type waiter struct {
	done     chan jsonrpc.Frame
	progress func(params json.RawMessage) // of notifications with the id as their token
}

func newLink(in io.Reader, out io.WriteCloser, log *slog.Logger, handler Handler) *link {
	l := &link{
		writing: make(chan struct{}, 1), answers: make(chan []byte, maxRequests), out: out, log: log, handler: handler,
		waiting: map[string]*waiter{}, asked: map[string]context.CancelFunc{},
	}
	l.life, l.end = context.WithCancelCause(context.Background())
	l.writing <- struct{}{}
	go l.sendAnswers()
	go func() {
		var defect error
		panics.Into(&defect, func() { l.read(jsonrpc.NewLineReader(in, maxFrame)) })
		if defect != nil {
			log.Error("reading a server's messages failed", "cause", defect)
			l.end(ErrEnded)
		}
	}()
	return l
}

// Ended returns a channel that is closed when the server has ended.
func (l *link) Ended() <-chan struct{} { return l.life.Done() }

// Call sends a request and returns the result of its response, as it was written. params is a JSON object without
// progressToken; with progress the server is asked to report it. The error is a [*jsonrpc.Fault] if the server says so.
func (l *link) Call(
	ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	w := &waiter{done: make(chan jsonrpc.Frame, 1), progress: progress}
	if l.life.Err() != nil {
		return nil, context.Cause(l.life)
	}
	l.mu.Lock()
	l.last++
	id := strconv.FormatInt(l.last, 10)
	l.waiting["n"+id] = w
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, "n"+id)
		l.mu.Unlock()
	}()
	if progress != nil {
		var err error
		if params, err = WithMeta(params, "progressToken", json.RawMessage(id)); err != nil {
			return nil, err
		}
	}
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	if err := l.send(message); err != nil {
		return nil, err
	}
	select {
	case f := <-w.done:
		return resultOf(method, f)
	case <-l.life.Done():
		return nil, context.Cause(l.life)
	case <-ctx.Done():
		_ = l.Notify("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%s}`, id)) // the call has ended
		return nil, ctx.Err()
	}
}

// resultOf returns the result in a response, or the fault.
func resultOf(method string, f jsonrpc.Frame) (json.RawMessage, error) {
	if f.Error == nil {
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
	return l.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// writeTime is how long a server may take to read a message. One that reads nothing is ended.
const writeTime = 10 * time.Second

func (l *link) send(message []byte) error {
	select {
	case <-l.writing:
	case <-l.life.Done():
		return context.Cause(l.life)
	}
	defer func() { l.writing <- struct{}{} }()
	if out, ok := l.out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // a pipe has deadlines
	}
	if _, err := l.out.Write(append(bytes.TrimSuffix(message, []byte("\n")), '\n')); err != nil {
		why := ErrEnded // its pipe is broken
		if errors.Is(err, os.ErrDeadlineExceeded) {
			why = fmt.Errorf("the server has read nothing for %s", writeTime)
		}
		l.end(why)
		return context.Cause(l.life)
	}
	return nil
}

// read reads messages until the stream ends.
func (l *link) read(lines *jsonrpc.LineReader) {
	for {
		line, err := lines.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			l.fail(long)
			continue
		case err != nil:
			l.end(ErrEnded)
			return
		}
		l.receive(line)
	}
}

// receive handles a message of the server. The caller no longer uses the line.
func (l *link) receive(line []byte) {
	f, fault := jsonrpc.Parse(line)
	if fault != nil {
		if lenient, ok := leniently(line); ok {
			f, fault = lenient, nil
		}
	}
	switch {
	case fault != nil && f.ID != nil && bytes.Contains(line, []byte(`"result"`)):
		l.failed(f.ID, jsonrpc.Faultf(internalError, "the answer of the server is no JSON: %s", fault.Message))
	case fault != nil: // a banner, or a half message
		l.mu.Lock()
		l.noise++
		first := l.noise == 1
		l.mu.Unlock()
		if first {
			l.log.Warn("a server wrote something else than a message", "line", jsonrpc.Quoted(string(line)))
		}
	case f.IsResponse:
		l.answered(f)
	case f.Method == "notifications/progress":
		l.progressed(line)
	case f.ID != nil:
		l.asks(f, paramsOf(line))
	case f.Method == "notifications/cancelled" && l.cancelled(line):
	case l.handler.Notify != nil:
		l.handler.Notify(f.Method, paramsOf(line))
	}
}

// ErrEnded is why calls of a server fail that has ended.
var ErrEnded = errors.New("the server has ended")

// leniently parses a message with names that stand twice or half of a surrogate pair, as some encoders write them, and
// a request of any size.
func leniently(line []byte) (f jsonrpc.Frame, ok bool) {
	var m struct {
		JSONRPC, Method   string
		ID, Result, Error json.RawMessage
	}
	if json.Unmarshal(line, &m) != nil {
		return f, false
	}
	f = jsonrpc.Frame{ID: m.ID, Method: m.Method, IsResponse: m.Method == "", Result: m.Result, Error: m.Error}
	key, fault := jsonrpc.KeyOf(m.ID)
	f.Key = key
	if f.IsResponse {
		return f, fault == nil && m.ID != nil && (m.Result != nil || m.Error != nil)
	}
	return f, fault == nil && m.JSONRPC == "2.0" // else it may be a line of a log
}

// fail answers the request whose response is too long.
func (l *link) fail(long *jsonrpc.TooLongError) {
	l.failed(jsonrpc.FindID(long.Prefix), jsonrpc.Faultf(internalError,
		"the answer has %d bytes, over the %d that are read", long.Size, maxFrame))
}

// failed answers a request whose response cannot be used.
func (l *link) failed(id json.RawMessage, why *jsonrpc.Fault) {
	key, fault := jsonrpc.KeyOf(id)
	if fault != nil || id == nil {
		l.log.Warn("a message of a server was dropped", "cause", why.Message)
		return
	}
	text, _ := json.Marshal(why) // two plain members
	l.answered(jsonrpc.Frame{Key: key, Error: text})
}

func (l *link) answered(f jsonrpc.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.waiting[f.Key]; w != nil { // else it is late, or has a wrong id
		delete(l.waiting, f.Key)
		w.done <- f
	}
}

// progressed passes progress on to the call of its token.
func (l *link) progressed(line []byte) {
	var params struct {
		Token json.RawMessage `json:"progressToken"`
	}
	_ = json.Unmarshal(paramsOf(line), &params) // it was parsed before
	key, fault := jsonrpc.KeyOf(params.Token)
	if fault != nil {
		return
	}
	l.mu.Lock()
	w := l.waiting[key]
	l.mu.Unlock()
	if w != nil && w.progress != nil {
		w.progress(paramsOf(line))
	}
}

// Limits on the requests of a server that are open at once; together they bound memory.
const (
	maxRequests = 64       // further ones are answered as busy, and dropped if the server does not read the answers
	maxParams   = 16 << 20 // bytes of their params
)

// asks starts the handler of a request of the server. The link itself answers ping, and refuses a request that exceeds
// a limit.
func (l *link) asks(f jsonrpc.Frame, params json.RawMessage) {
	ctx, cancel := context.WithCancel(l.life)
	var fault *jsonrpc.Fault
	l.mu.Lock()
	switch {
	case f.Method == "ping":
	case l.handler.Request == nil:
		fault = jsonrpc.Faultf(MethodNotFound, "%s is not relayed to the client", jsonrpc.Quoted(f.Method))
	case l.asked[f.Key] != nil:
		fault = jsonrpc.BadRequest("id %s is in use", jsonrpc.Echo(string(f.ID)))
	case len(l.asked) == maxRequests:
		fault = jsonrpc.Faultf(jsonrpc.CodeBusy, "busy: %d requests of the server are open; try again later", maxRequests)
	case len(params) > maxParams:
		fault = jsonrpc.BadParams("params of %d bytes are too long; send at most %d", len(params), maxParams)
	default:
		l.asked[f.Key] = cancel
		l.mu.Unlock()
		go l.answer(ctx, f, params)
		return
	}
	l.mu.Unlock()
	cancel()
	message := jsonrpc.Response(f.ID, nil, fault)
	if fault == nil {
		message = jsonrpc.Response(f.ID, struct{}{}, nil)
	}
	select {
	case l.answers <- message:
	default:
	}
}

// answer sends the handler's answer to a request of the server, unless the server has cancelled it.
func (l *link) answer(ctx context.Context, f jsonrpc.Frame, params json.RawMessage) {
	var result json.RawMessage
	var err error
	panics.Into(&err, func() { result, err = l.handler.Request(ctx, f.Method, params) })
	cancelled := ctx.Err() != nil
	l.mu.Lock()
	l.asked[f.Key]()
	delete(l.asked, f.Key)
	l.mu.Unlock()
	if defect, ok := errors.AsType[*panics.Caught](err); ok {
		l.log.Error("answering a server's request failed", "method", jsonrpc.Quoted(f.Method), "cause", defect)
		err = errors.New("a defect of the client")
	}
	fault, isFault := errors.AsType[*jsonrpc.Fault](err)
	if err != nil && !isFault {
		fault = jsonrpc.Faultf(internalError, "%s", jsonrpc.Echo(err.Error()))
	}
	message := jsonrpc.Response(f.ID, nil, fault)
	if fault == nil {
		message = jsonrpc.Response(f.ID, result, nil)
	}
	if !cancelled {
		_ = l.send(message) // if it fails, the link has ended
	}
}

// sendAnswers sends the answers of the link itself, one after the other.
func (l *link) sendAnswers() {
	for {
		select {
		case message := <-l.answers:
			_ = l.send(message) // if it fails, the link has ended
		case <-l.life.Done():
			return
		}
	}
}

// cancelled ends a request of the server that it cancels. It reports whether there is such a request.
func (l *link) cancelled(line []byte) bool {
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(paramsOf(line), &params) // it was parsed before
	key, _ := jsonrpc.KeyOf(params.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	cancel := l.asked[key]
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// paramsOf returns the params of a message as they are written.
func paramsOf(line []byte) json.RawMessage {
	var m struct{ Params json.RawMessage }
	_ = json.Unmarshal(line, &m) // it was parsed before
	return m.Params
}

// WithMeta returns params with a member of their _meta set.
func WithMeta(params json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	all, meta := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(params, &all); err != nil {
		return nil, err
	}
	if raw := all["_meta"]; raw != nil {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, err
		}
	}
	meta[name] = value
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	all["_meta"] = raw
	return json.Marshal(all)
}
