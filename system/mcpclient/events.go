package mcpclient

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// cursor reads a stream of server-sent events, and remembers where to resume it.
type cursor struct {
	id    string        // of the last event
	retry time.Duration // that the server wants between streams
}

// errLong is why a message is not read.
var errLong = fmt.Errorf("the answer has over %d MiB", maxFrame>>20)

// next returns the next event that has data, and its type, which is "" for most.
func (c *cursor) next(in *eventLines) (kind string, data []byte, err error) {
	id, left := c.id, maxFrame
	for {
		line, err := in.next(left)
		if errors.Is(err, errLong) {
			c.id = id // resuming must not bring the event again
		}
		if err != nil {
			return "", nil, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if data == nil {
				data = value
			} else {
				data = append(append(data, '\n'), value...)
			}
			left = maxFrame - len(data)
		case "id":
			id = string(value)
		case "event":
			kind = string(value)
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil {
				c.retry = min(time.Duration(max(ms, 0))*time.Millisecond, longestPause)
			}
		case "":
			if len(line) > 0 {
				continue // a comment
			}
			if c.id = id; len(data) > 0 {
				return kind, data, nil
			}
			kind, data = "", nil
		}
	}
}

// eventLines reads the lines of an event stream. They end in LF, CR or CRLF; a BOM before the first is skipped.
type eventLines struct {
	in    *bufio.Reader
	begun bool
	cr    bool // the last line ended in CR: a LF may follow
}

// next returns a line of at most max bytes without its end. A line without an end is an error.
func (e *eventLines) next(max int) (line []byte, err error) {
	for {
		if _, err := e.in.Peek(1); err != nil {
			return nil, err
		}
		part, _ := e.in.Peek(e.in.Buffered())
		skip := 0
		switch first := part[0]; {
		case e.cr && first == '\n':
			skip = 1
		case !e.begun && first == bom[0]:
			if start, err := e.in.Peek(len(bom)); err == nil && string(start) == bom {
				skip = len(bom)
			}
		}
		if e.begun, e.cr = true, false; skip > 0 {
			_, _ = e.in.Discard(skip) // it was seen
			continue
		}
		end := bytes.IndexAny(part, "\r\n")
		if end < 0 {
			end = len(part)
		} else {
			skip, e.cr = 1, part[end] == '\r'
		}
		if line = append(line, part[:end]...); len(line) > max+len("data: ") {
			return nil, errLong
		}
		if _, _ = e.in.Discard(end + skip); skip > 0 {
			return line, nil
		}
	}
}

const bom = "\ufeff"

// receiveEvents hands the messages of a stream to the link until it ends, and returns why it has ended.
func (r *Remote) receiveEvents(in *eventLines, c *cursor, of string) error {
	for {
		kind, data, err := c.next(in)
		if err != nil {
			return err
		}
		if kind == "" || kind == "message" {
			r.received(data, of)
		}
	}
}
