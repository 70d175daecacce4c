package server

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// A Send puts one whole message on its way to the client, in the order of the calls to it; answer
// says that it is the last one for its request. It may block while the client is behind, and fails
// once nobody can read it: the transport has noticed then, and senders need not. The message ends
// with a newline, holds no other, and is not changed afterwards.
type Send func(message []byte, answer bool) error

func (s Send) answer(id json.RawMessage, result any, fault *Fault) {
	_ = s(response(id, result, fault), true)
}

// notifier is the one way in which a call speaks before its answer: progress and log messages.
// What it sends is on its way before it returns, and after close it sends nothing, so that no
// notification is lost and none follows the answer.
type notifier struct {
	send  Send
	token json.RawMessage  // as sent; nil: no progress is wanted
	words bool             // the client's protocol has a message in progress notes
	level mcp.LoggingLevel // log messages below it are not sent; "": none are

	mu     sync.Mutex
	closed bool
	last   int64 // progress told last; −1: none yet
}

// progress tells how far the call is. MCP wants it to grow: what does not is not told.
func (n *notifier) progress(done, total int64, message string) {
	if n.token == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || done <= n.last {
		return
	}
	n.last = done
	params := progressParams{Token: n.token, Progress: done, Total: max(total, 0)}
	if n.words {
		params.Message = content.Visible(content.ClipBytes(message, maxEcho), false)
	}
	n.put("notifications/progress", params)
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress int64           `json:"progress"`
	Total    int64           `json:"total,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// log sends a log message where the client asked for such.
func (n *notifier) log(level mcp.LoggingLevel, logger, text string) {
	if n.level == "" || !level.ShouldSendTo(n.level) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.put("notifications/message", map[string]any{"level": level, "logger": logger, "data": text})
	}
}

// pass sends a notification that mcp-go made.
func (n *notifier) pass(note mcp.JSONRPCNotification) { n.tell(note.Method, note.Params) }

// tell sends a notification of any sort.
func (n *notifier) tell(method string, params any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.put(method, params)
	}
}

// put is called with mu held.
func (n *notifier) put(method string, params any) {
	message, err := encode(notification{JSONRPC: mcp.JSONRPC_VERSION, Method: method, Params: params})
	if err == nil {
		_ = n.send(message, false)
	}
}

type notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// forward sends a request of ours that belongs to the call.
func (n *notifier) forward(message []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errAnswered
	}
	return n.send(message, false)
}

var errAnswered = errors.New("the call was answered")

// close waits for what is being sent; nothing is sent after it.
func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
}
