package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Notifier sends the notifications of one call before its answer: progress, log messages and others.
// Each method returns after its message was sent, and after Close nothing is sent: no notification is lost and none
// follows the answer. Methods are safe for concurrent use.
type Notifier struct {
	Send     Send
	Token    json.RawMessage  // the progress token as sent; nil: the client wants no progress
	Messages bool             // the client's protocol allows a message in progress notifications
	level    mcp.LoggingLevel // log messages below this level are not sent; "": no log messages are sent

	mu     sync.Mutex
	closed bool
	Last   float64     // the progress sent last; −1: none yet
	total  int64       // the total sent last
	sent   time.Time   // when the last progress was sent
	began  time.Time   // when the heartbeat started
	timer  *time.Timer // of the heartbeat; nil: not started
}

// NewNotifier returns the notifier of one request. token is its progressToken as sent; nil: the client wants no
// progress. Log messages below level are not sent; if level is "", none are. messages reports whether the
// client's protocol allows a message in progress notifications.
func NewNotifier(send Send, token json.RawMessage, level mcp.LoggingLevel, messages bool) *Notifier {
	return &Notifier{Send: send, Token: token, level: level, Messages: messages, Last: -1}
}

// HeartbeatInterval is the time without progress after which a call with a progress token sends a heartbeat.
const HeartbeatInterval = time.Second

// heartbeatStep is added to the progress by each heartbeat. MCP requires that progress grows; the small step keeps it
// below the tool's next value.
const heartbeatStep = 0.001

// StartHeartbeat sends progress to the client each [HeartbeatInterval] in which the tool reports none.
func (n *Notifier) StartHeartbeat() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Token == nil || n.closed {
		return
	}
	n.began, n.sent = time.Now(), time.Now()
	n.timer = time.AfterFunc(HeartbeatInterval, n.heartbeat)
}

func (n *Notifier) heartbeat() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	silent := time.Since(n.sent)
	if silent >= HeartbeatInterval {
		n.sendProgress(max(n.Last, 0)+heartbeatStep, n.total, fmt.Sprintf("%d s so far", int(time.Since(n.began).Seconds())))
		silent = 0
	}
	n.timer.Reset(HeartbeatInterval - silent)
}

// Progress reports how far the call is. It ignores values that do not grow, since MCP requires that progress grows.
func (n *Notifier) Progress(done, total int64, message string) {
	if n.Token == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if float64(done) > n.Last {
		n.sendProgress(float64(done), max(total, 0), message)
	}
}

// sendProgress sends a progress notification. The caller must hold mu.
func (n *Notifier) sendProgress(progress float64, total int64, message string) {
	n.Last, n.total, n.sent = progress, total, time.Now()
	params := progressParams{Token: n.Token, Progress: progress, Total: total}
	if n.Messages {
		params.Message = content.Visible(content.ClipBytes(message, MaxEcho), false)
	}
	n.sendLocked("notifications/progress", params)
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
	Total    int64           `json:"total,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// Log sends a log message if the client asked for messages of this level.
func (n *Notifier) Log(level mcp.LoggingLevel, logger, text string) {
	if n.level != "" && level.ShouldSendTo(n.level) {
		n.Notify("notifications/message", map[string]any{"level": level, "logger": logger, "data": text})
	}
}

// Notify sends a notification of any method.
func (n *Notifier) Notify(method string, params any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sendLocked(method, params)
}

// sendLocked encodes and sends a notification, unless the notifier is closed. The caller must hold mu.
func (n *Notifier) sendLocked(method string, params any) {
	if message, err := Notification(method, params); err == nil && !n.closed {
		_ = n.Send(message, nil)
	}
}

// Forward sends a message of this server that belongs to the call, such as a request to the client. It returns
// [ErrAnswered] after Close.
func (n *Notifier) Forward(message []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrAnswered
	}
	return n.Send(message, nil)
}

// ErrAnswered reports that the call was answered, so that nothing more can be sent for it.
var ErrAnswered = errors.New("the call was answered")

// Close waits for the message that is being sent, which may take as long as the client takes to read. Nothing is sent
// after Close.
func (n *Notifier) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.timer != nil {
		n.timer.Stop()
	}
}
