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

// link speaks JSON-RPC with one server over two streams. It is safe for concurrent use.
type link struct {
	out  io.WriteCloser
	log  *slog.Logger
	hear func(method string) // notifications of the server, one after the other

	writing  chan struct{}      // holds one token: who takes it writes a message
	requests chan jsonrpc.Frame // of the server, to be answered

	mu      sync.Mutex
	last    int64
	waiting map[string]*waiter // by [jsonrpc.Frame.Key]
	err     error              // why the link ended
	ended   chan struct{}
	noise   int // lines that were no messages
}

// waiter waits for the response to one request.
type waiter struct {
	done     chan jsonrpc.Frame
	progress func(params json.RawMessage) // of notifications with the id as their token
}

func newLink(in io.Reader, out io.WriteCloser, log *slog.Logger, hear func(method string)) *link {
	l := &link{
		writing: make(chan struct{}, 1), requests: make(chan jsonrpc.Frame, maxRequests),
		out: out, log: log, hear: hear, waiting: map[string]*waiter{}, ended: make(chan struct{}),
	}
	l.writing <- struct{}{}
	go l.answerRequests()
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

// Call sends a request and returns the result of its response, as it was written. params is a JSON object without
// progressToken; with progress the server is asked to report it. The error is a [*jsonrpc.Fault] if the server says so.
func (l *link) Call(
	ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	w := &waiter{done: make(chan jsonrpc.Frame, 1), progress: progress}
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return nil, l.err
	}
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
	case <-l.ended:
		return nil, l.err
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

// respond answers a request of the server.
func (l *link) respond(id json.RawMessage, result any, fault *jsonrpc.Fault) error {
	return l.send(bytes.TrimSuffix(jsonrpc.Response(id, result, fault), []byte("\n")))
}

// writeTime is how long a server may take to read a message. One that reads nothing is ended.
const writeTime = 10 * time.Second

func (l *link) send(message []byte) error {
	select {
	case <-l.writing:
	case <-l.ended:
		return l.err
	}
	defer func() { l.writing <- struct{}{} }()
	if out, ok := l.out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // a pipe has deadlines
	}
	if _, err := l.out.Write(append(message, '\n')); err != nil {
		why := ErrEnded // its pipe is broken
		if errors.Is(err, os.ErrDeadlineExceeded) {
			why = fmt.Errorf("the server has read nothing for %s", writeTime)
		}
		l.end(why)
		return l.err
	}
	return nil
}

// maxRequests is how many requests of a server may wait for their answers. Further ones are dropped.
const maxRequests = 64

// answerRequests answers the requests of the server, one after the other.
func (l *link) answerRequests() {
	for {
		select {
		case f := <-l.requests:
			l.request(f)
		case <-l.ended:
			return
		}
	}
}

// end ends all calls with an error.
func (l *link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.ended)
	}
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
		f, fault := jsonrpc.Parse(line)
		switch {
		case fault != nil && l.lenient(line): // a response that strict readers refuse
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
			select {
			case l.requests <- f:
			default:
			}
		default:
			l.hear(f.Method)
		}
	}
}

// ErrEnded is why calls of a server fail that has ended.
var ErrEnded = errors.New("the server has ended")

// lenient handles a response with names that stand twice or half of a surrogate pair, as some encoders write them.
func (l *link) lenient(line []byte) bool {
	var m struct{ ID, Result, Error json.RawMessage }
	if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Result == nil && m.Error == nil {
		return false
	}
	key, fault := jsonrpc.KeyOf(m.ID)
	if fault == nil {
		l.answered(jsonrpc.Frame{Key: key, IsResponse: true, Result: m.Result, Error: m.Error})
	}
	return fault == nil
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

// request answers a request of the server.
func (l *link) request(f jsonrpc.Frame) {
	var result any
	var fault *jsonrpc.Fault
	switch f.Method {
	case "ping":
		result = struct{}{}
	default:
		fault = jsonrpc.Faultf(MethodNotFound, "%s is not relayed to the client", jsonrpc.Quoted(f.Method))
	}
	_ = l.respond(f.ID, result, fault) // if it fails, the link has ended
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
