package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// A Send puts one whole message on its way to the client, in the order of the calls to it. answer is nil
// unless it is the last one for its request; then it may be called once the message waits for nobody but
// the client, and before the client can read it: whoever reads an answer may count on the place of the call.
// Send may block while the client is behind, and fails once nobody can read it: the transport has noticed
// then, and senders need not. The message ends with a newline, holds no other, and is not changed afterwards.
type Send func(message []byte, answer func()) error

func (s Send) answer(id json.RawMessage, result any, fault *Fault) {
	_ = s(response(id, result, fault), func() {})
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
	last   float64 // progress told last; −1: none yet
	total  int64   // as told last
	told   time.Time
	began  time.Time
	beat   *time.Timer // nil: none
}

// beatEvery is how long a call with a progress token may be silent.
const beatEvery = time.Second

// beatStep is what a beat adds to the progress: it must grow, and stay below the tool's next.
const beatStep = 0.001

// start has the client told that the call goes on while its tool says nothing.
func (n *notifier) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.token == nil || n.closed {
		return
	}
	n.began, n.told = time.Now(), time.Now()
	n.beat = time.AfterFunc(beatEvery, n.keepUp)
}

func (n *notifier) keepUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	silent := time.Since(n.told)
	if silent >= beatEvery {
		n.note(max(n.last, 0)+beatStep, n.total, fmt.Sprintf("%d s so far", int(time.Since(n.began).Seconds())))
		silent = 0
	}
	n.beat.Reset(beatEvery - silent)
}

// progress tells how far the call is. MCP wants it to grow: what does not is not told.
func (n *notifier) progress(done, total int64, message string) {
	if n.token == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed && float64(done) > n.last {
		n.note(float64(done), max(total, 0), message)
	}
}

// note is called with mu held.
func (n *notifier) note(progress float64, total int64, message string) {
	n.last, n.total, n.told = progress, total, time.Now()
	params := progressParams{Token: n.token, Progress: progress, Total: total}
	if n.words {
		params.Message = content.Visible(content.ClipBytes(message, maxEcho), false)
	}
	n.put("notifications/progress", params)
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
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
		_ = n.send(message, nil)
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
	return n.send(message, nil)
}

var errAnswered = errors.New("the call was answered")

// close waits for what is being sent; nothing is sent after it.
func (n *notifier) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.beat != nil {
		n.beat.Stop()
	}
}

// hush is a close that does not wait: for a call that was cancelled.
func (n *notifier) hush() { go n.close() }
