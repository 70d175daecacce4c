package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// newPipe returns a link over two streams; each message is a line.
func newPipe(in io.Reader, out io.WriteCloser, log *slog.Logger, handler Handler) *link {
	l := newLink(log, handler)
	writing := make(chan struct{}, 1) // holds a token while a message is written
	l.transmit = func(_ context.Context, m message) error {
		select {
		case writing <- struct{}{}:
		case <-l.life.Done():
			return context.Cause(l.life)
		}
		defer func() { <-writing }()
		return l.write(out, m.text)
	}
	go l.guard(func() { l.read(jsonrpc.NewLineReader(in, maxFrame)) })
	return l
}

// writeTime is how long a server may take to read a message. One that reads nothing is ended.
const writeTime = 10 * time.Second

func (l *link) write(out io.Writer, message []byte) error {
	if out, ok := out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // a pipe has deadlines
	}
	if _, err := out.Write(append(message, '\n')); err != nil {
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
			l.failed(jsonrpc.FindID(long.Prefix), jsonrpc.Faultf(internalError,
				"the answer has %d bytes, over the %d that are read", long.Size, maxFrame))
		case err != nil:
			l.end(ErrEnded)
			return
		default:
			l.receive(line)
		}
	}
}
