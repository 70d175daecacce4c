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
func (c *cursor) next(in *bufio.Reader) (kind string, data []byte, err error) {
	id, left := c.id, maxFrame
	for {
		line, err := readLine(in, left)
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

// readLine returns a line of at most max bytes without its end. A line without an end is an error.
func readLine(in *bufio.Reader, max int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > max+len("data: \r\n") {
			return nil, errLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

// receiveEvents hands the messages of a stream to the link until it ends, and returns why it has ended.
func (r *Remote) receiveEvents(in *bufio.Reader, c *cursor, of string) error {
	for {
		kind, data, err := c.next(in)
		if err != nil {
			return err
		}
		if kind == "" || kind == "message" {
			r.receive(data, of)
		}
	}
}
