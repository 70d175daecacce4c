// Package jsonrpc reads, checks, limits and writes the JSON-RPC messages of MCP.
//
//	bytes ──► lines.go ──► frames.go, batch.go ──► Frame ──► the caller
//	          call_limit.go, owner_limit.go: limits on what runs concurrently
//	bytes ◄── outbox.go ◄── Send ◄── message.go: answers; notify.go: progress, log
//
// Of MCP it knows only the envelope: _meta, error codes and the notifications of a request. Package server owns
// connections and sessions.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Send sends one whole message to the client; messages go out in the order of the calls to Send.
// answer is nil unless the message is the last one of its request. Send may call answer when the message is queued,
// and always before the client can read it: the call then frees its slot for the client's next call.
// Send may block while the client reads slowly. It fails once nobody can read the message; the transport already
// knows, so callers may ignore the error. The message ends with its only newline and must not change afterwards.
type Send func(message []byte, answer func()) error

// Answer sends the response to the request with this id: the fault, or the result if fault is nil.
func (s Send) Answer(id json.RawMessage, result any, fault *Fault) {
	_ = s(Response(id, result, fault), func() {})
}

// Response encodes a response, with its newline. It escapes hidden characters in the message of a fault,
// since some messages repeat text of the client.
func Response(id json.RawMessage, result any, fault *Fault) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	if fault != nil {
		shown := *fault // a copy: some faults are package variables
		shown.Message = content.Visible(shown.Message, false)
		fault = &shown
	}
	if raw, ok := result.(json.RawMessage); ok && fault == nil && bytes.IndexByte(raw, '\n') < 0 {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, raw) // not even its blanks change
	}
	type envelope struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *Fault          `json:"error,omitempty"`
	}
	message, err := encodeLine(envelope{mcp.JSONRPC_VERSION, id, result, fault})
	if err != nil {
		fault = Faultf(mcp.INTERNAL_ERROR, "the answer could not be encoded: %v", err)
		message, _ = encodeLine(envelope{mcp.JSONRPC_VERSION, id, nil, fault})
	}
	return message
}

type notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// Notification encodes a notification, with its newline.
func Notification(method string, params any) ([]byte, error) {
	return encodeLine(notification{mcp.JSONRPC_VERSION, method, params})
}

// Request encodes a request of this server to its client, with its newline.
func Request(id, method string, params any) ([]byte, error) {
	return encodeLine(struct {
		notification
		ID string `json:"id"`
	}{notification{mcp.JSONRPC_VERSION, method, params}, id})
}

// encodeLine encodes v as one line of JSON with its newline. It does not escape text for HTML.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}
