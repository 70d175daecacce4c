// Package stdio serves one client on standard input and output, one message per line, and detects when the process must
// end: on a signal, or when its client has gone.
package stdio

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

const (
	// The process must end within a second of its client, whatever its calls do: goneAfter,
	// [jsonrpc.StallPollInterval] and [server.StopGrace] pass one after the other, and leave a quarter of a second for
	// a busy machine.

	// goneAfter is how long a client that has closed the input may read nothing before it counts as gone, even if
	// parts of the input are unread.
	goneAfter = 500 * time.Millisecond
)

// transport serves one client.
type transport struct {
	options server.Options
	conn    *server.Conn
	out     io.Writer
	box     *jsonrpc.Outbox
}

// Serve serves one client, with one message per line on in and out. It returns nil when in has ended and all requests
// are answered, or when ctx has ended; otherwise the error of in or out, or [jsonrpc.ErrStalled] if the client read
// nothing for the write timeout. It returns within a second of that event, whatever calls and writes do. A read of in
// or a write to out may then still block, so the process should end, or the caller close both.
func Serve(ctx context.Context, s *server.Server, in io.Reader, out io.Writer) error {
	t := &transport{options: s.Options(), conn: s.Connect(ctx), out: out, box: jsonrpc.NewOutbox(out)}
	defer t.conn.End(server.ErrEnding)
	defer t.conn.Listen(t.box.Send)()
	go t.box.Run()
	defer t.box.Fail(io.ErrClosedPipe) // ends Run; the queue has been flushed by then

	read := make(chan error, 1)
	go func() { read <- t.readLines(in) }()
	var ended atomic.Bool
	go t.watch(func() bool { return ended.Load() || inputGone(in) })

	select {
	case err := <-read:
		ended.Store(true)
		return t.drain(ctx, err)
	case <-t.box.Ctx.Done():
		return t.leave()
	case <-ctx.Done():
		return t.leave()
	}
}

// readLines passes each line to the connection until the input ends; it returns nil at a regular end.
func (t *transport) readLines(in io.Reader) error {
	lines := jsonrpc.NewLineReader(in, t.options.MaxMessage)
	for !t.ended() {
		line, err := lines.Next()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			t.options.Log.Warn("message dropped: too long", "bytes", long.Size, "max", t.options.MaxMessage)
			jsonrpc.Send(t.box.Send).Answer(jsonrpc.FindID(long.Prefix), nil, jsonrpc.BadRequest("a message of %d bytes was dropped; send at most %d (--max-message)", long.Size, t.options.MaxMessage))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if work := t.conn.Accept(t.conn.Context(), line, t.box.Send); work != nil {
			go work()
		}
	}
	return nil
}

func (t *transport) ended() bool { return t.conn.Context().Err() != nil }

// drain waits at most EOFGrace for the calls in flight, after the input has ended with readErr. Calls that take longer
// get an error.
func (t *transport) drain(ctx context.Context, readErr error) error {
	t.conn.EndInput()
	grace, stop := context.WithTimeout(ctx, t.options.EOFGrace)
	defer stop()
	defer context.AfterFunc(t.box.Ctx, stop)()
	if !t.conn.WaitAnswered(grace) && ctx.Err() == nil {
		t.conn.FailOpenCalls(jsonrpc.Faultf(jsonrpc.CodeEnding,
			"the input has ended, and this call took longer than %s after it", t.options.EOFGrace))
	}
	t.conn.EndListening()
	// A client that still reads, however slowly, gets all answers; watch fails the outbox if it stops reading.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(goneAfter, func() { t.box.Fail(jsonrpc.ErrStalled) }) })()
	err := t.box.Flush()
	t.conn.Stop()
	if err != nil {
		return err
	}
	return readErr
}

// leave stops the calls without answering them: the client has gone, or the process must end.
func (t *transport) leave() error {
	late := time.AfterFunc(goneAfter, func() { t.box.Fail(jsonrpc.ErrStalled) })
	defer late.Stop()
	t.conn.Stop()
	return t.box.Flush()
}

// watch fails the outbox when the client reads nothing for too long. ended must report the end of the input even
// behind unread messages, because the input is not read while the outbox is full.
func (t *transport) watch(ended func() bool) {
	limit := t.box.FailWhenStalled(t.conn.Context(), func(stalled time.Duration) time.Duration {
		if stalled > goneAfter && ended() {
			return min(t.options.WriteTimeout, goneAfter)
		}
		return t.options.WriteTimeout
	}, func() bool { return hasRoom(t.out) })
	if limit > 0 {
		t.options.Log.Warn("the client reads nothing", "for", limit)
	}
}
