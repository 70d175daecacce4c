package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
)

// maxBatch is how many messages one batch may hold.
const maxBatch = 100

// isBatch says that a message is an array.
func isBatch(message []byte) bool {
	start := bytes.TrimLeft(message, " \t\r\n")
	return len(start) > 0 && start[0] == '['
}

// acceptBatch takes a JSON-RPC batch. Only protocol 2025-03-26 has them: the answers come in one
// array, once the last is known; notifications go out as they arise.
func (c *Conn) acceptBatch(ctx context.Context, message []byte, send Send) (work func()) {
	elements, fault := batchOf(message)
	if fault == nil && c.session.said().protocol != mcp.ProtocolVersion20250326 {
		fault = errNoBatch
	}
	if fault != nil {
		send.answer(nil, nil, fault)
		return nil
	}
	var mu sync.Mutex
	var answers [][]byte
	collect := func(m []byte, answer func()) error {
		if answer == nil {
			return send(m, nil)
		}
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, bytes.TrimSuffix(m, []byte("\n")))
		return nil
	}
	c.fell(func(c *Conn) { c.open++ }) // the batch itself has to be answered
	var works []func()
	for _, e := range elements {
		if w := c.acceptElement(ctx, e, collect); w != nil {
			works = append(works, w)
		}
	}
	return func() {
		var all sync.WaitGroup
		for _, w := range works {
			all.Go(w)
		}
		all.Wait()
		mu.Lock() // an overdue call is answered for by another goroutine
		defer mu.Unlock()
		if len(answers) > 0 {
			_ = send(append(append([]byte("["), bytes.Join(answers, []byte(","))...), "]\n"...), func() {})
		}
		c.fell(func(c *Conn) { c.open-- })
	}
}

var errNoBatch = faultf(mcp.INVALID_REQUEST, "batches belong to protocol %s alone; send each message by itself", mcp.ProtocolVersion20250326)

// acceptElement refuses what may not stand in a batch: initialize, which decides whether there are batches, and
// what belongs to a protocol that has none.
func (c *Conn) acceptElement(ctx context.Context, message []byte, send Send) (work func()) {
	f, fault := parse(message)
	if fault == nil {
		if fault = notInBatch(f); fault == nil {
			work, _ = c.acceptFrame(ctx, f, send)
			return work
		}
		if f.id == nil { // a notification
			return nil
		}
	}
	send.answer(f.id, nil, fault)
	return nil
}

func notInBatch(f frame) *Fault {
	switch method := mcp.MCPMethod(f.method); {
	case method == mcp.MethodInitialize:
		return faultf(mcp.INVALID_REQUEST, "initialize is not taken in a batch; send it by itself")
	case f.modern(), method == mcp.MethodSubscriptionsListen, method == mcp.MethodServerDiscover:
		return faultf(mcp.INVALID_REQUEST, "%s is of protocol %s, which has no batches; send it by itself",
			echo(f.method), mcp.ProtocolVersion20260728)
	}
	return nil
}

// batchOf cuts an array into its elements.
func batchOf(message []byte) ([]json.RawMessage, *Fault) {
	d := jsontext.NewDecoder(bytes.NewBuffer(message), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, parseFault(err)
	}
	var elements []json.RawMessage
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, parseFault(err)
		}
		end := int(d.InputOffset())
		elements = append(elements, message[end-len(value):end:end])
		if len(elements) > maxBatch {
			return nil, faultf(mcp.INVALID_REQUEST, "a batch may hold %d messages at most", maxBatch)
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, parseFault(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, parseFault(errTrailing)
	}
	if len(elements) == 0 {
		return nil, faultf(mcp.INVALID_REQUEST, "the batch is empty")
	}
	return elements, nil
}
