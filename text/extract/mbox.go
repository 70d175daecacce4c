package extract

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// readMbox reads a file of several messages. A message that cannot be read is counted.
func readMbox(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	m := mail{ctx: ctx, b: b, left: maxText}
	n, unread := 0, 0
	err := eachMessage(bufio.NewReader(io.NewSectionReader(r, 0, size)), func(from, to int64) error {
		n++
		m.place = fmt.Sprintf("message %d", n)
		err := m.message(io.NewSectionReader(r, from, to-from), 0)
		switch {
		case errors.Is(err, ErrTooLarge), ctx.Err() != nil:
			return err
		case errors.Is(err, errTruncated):
			m.damaged = err
		case err != nil:
			unread++
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case unread == n:
		return fmt.Errorf("%w: it has no message", ErrBroken)
	case unread > 0:
		m.note("%s cannot be read", count(unread, "message"))
	}
	m.addNotes()
	return nil
}

// mboxStart begins a message after a blank line: the sender and the time.
var mboxStart = content.Pattern(`^From .*\d:\d\d`)

// eachMessage calls visit with the range of each message.
func eachMessage(in *bufio.Reader, visit func(from, to int64) error) error {
	var from, at int64
	blank, start := true, true // the line before is blank; the next byte starts a line
	for {
		line, err := in.ReadSlice('\n')
		if start && blank && at > from && mboxStart().Match(line) {
			if err := visit(from, at); err != nil {
				return err
			}
			from = at
		}
		at += int64(len(line))
		switch {
		case err == io.EOF:
			return visit(from, at)
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
		blank, start = start && len(bytes.TrimRight(line, "\r\n")) == 0, err == nil
	}
}
