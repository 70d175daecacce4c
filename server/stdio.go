package server

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// The process has to be gone within a second of its client, whatever its calls do: goneTime, watchEvery and
	// leaveTime come one after the other, and leave a quarter of it to a machine that is busy.

	// leaveTime is how long work that was told to stop may take to put away what it has, before the
	// connection is given up. All tools stop within a few ms.
	leaveTime = 200 * time.Millisecond
	// goneTime is how long a client whose input has ended, read to its end or not, may read nothing before
	// it counts as gone.
	goneTime = 500 * time.Millisecond
	// watchEvery is how often a stalled client is looked for.
	watchEvery = 50 * time.Millisecond
)

// ServeStdio serves one client: a message a line from in, a message a line to out. It returns nil
// once in has ended and what was asked is answered, or ctx has ended; else what broke: an error of
// in or out, or a client that read nothing for the write time-out. It returns within a second of
// any of these, whatever calls and writes do; a read of in or a write to out may then still be
// blocked, so the process should end, or the caller close both.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	box := newOutbox(out)
	conn := s.Connect(ctx)
	defer conn.end(errEnding)
	defer conn.Listen(box.send)()
	go box.run()
	defer box.fail(io.ErrClosedPipe) // ends run; what was to be written is written by then

	read := make(chan error, 1)
	go func() { read <- s.readLines(conn, in, box.send) }()
	var ended atomic.Bool
	go s.watch(conn.ctx, box, func() bool { return ended.Load() || inputGone(in) })

	select {
	case err := <-read:
		ended.Store(true)
		return s.finish(ctx, conn, box, err)
	case <-box.done.Done():
		return s.leave(conn, box)
	case <-ctx.Done():
		return s.leave(conn, box)
	}
}

// readLines feeds the connection until the input ends; nil is its regular end.
func (s *Server) readLines(conn *Conn, in io.Reader, send Send) error {
	lines := newLineReader(in, s.maxMessage)
	for conn.ctx.Err() == nil {
		line, err := lines.read()
		var long *tooLong
		switch {
		case errors.As(err, &long):
			s.log.Warn("message dropped: too long", "bytes", long.size, "max", s.maxMessage)
			send.answer(findID(long.prefix), nil, faultf(mcp.INVALID_REQUEST,
				"a message of %d bytes was dropped, at most %d are taken (--max-message)", long.size, s.maxMessage))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if work := conn.accept(conn.ctx, line, send); work != nil {
			go work()
		}
	}
	return nil
}

// finish answers what is in flight after the input has ended.
func (s *Server) finish(ctx context.Context, conn *Conn, box *outbox, readErr error) error {
	grace, stop := context.WithTimeout(ctx, s.eofGrace)
	defer stop()
	defer context.AfterFunc(box.done, stop)()
	if !conn.wait(grace, func(c *Conn) int { return c.open }) && ctx.Err() == nil {
		conn.giveUp(faultf(codeEnding, "the input has ended, and this call took longer than %s after it", s.eofGrace))
	}
	conn.endListening()
	// A client that goes on reading, however slowly, gets all of it: watch ends the others.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(goneTime, func() { box.fail(errStalled) }) })()
	err := box.flush()
	s.stop(conn)
	if err != nil {
		return err
	}
	return readErr
}

// leave ends without answers: the client is gone, or the process is to end.
func (s *Server) leave(conn *Conn, box *outbox) error {
	late := time.AfterFunc(goneTime, func() { box.fail(errStalled) })
	defer late.Stop()
	s.stop(conn)
	return box.flush()
}

// stop tells all work to end and gives it a moment to.
func (s *Server) stop(conn *Conn) {
	conn.end(errEnding)
	moment, stop := context.WithTimeout(context.Background(), leaveTime)
	defer stop()
	if !conn.wait(moment, func(c *Conn) int { return c.running }) {
		s.log.Warn("calls that did not stop were left behind")
	}
}

// watch breaks the outbox when the client reads nothing for too long. While the outbox is full the
// input is not read, so that its end may stand behind what is still unread: ended is to know of it.
func (s *Server) watch(ctx context.Context, box *outbox, ended func() bool) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var stalled time.Duration
	for {
		select {
		case <-tick.C:
			// A time in which this process itself stood still, or came to no end of a write that found room, is not one
			// in which the client read nothing.
			if stalled = min(stalled+watchEvery, box.stalled()); stalled > 0 && hasRoom(box.out) {
				stalled = 0
			}
			limit := s.writeDeadline
			if stalled > goneTime && ended() {
				limit = min(limit, goneTime)
			}
			if stalled > limit {
				s.log.Warn("the client reads nothing", "for", limit)
				box.fail(errStalled)
				return
			}
		case <-box.done.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}
