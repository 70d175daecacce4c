package server

import (
	"errors"
	"slices"
)

// stream is a way to the client for what belongs to no call: all of stdio, the GET stream of streamable HTTP.
type stream struct{ send Send }

var errNoStream = errors.New("the client keeps no stream open on which it could be told")

// Listen has the connection's own messages, those that belong to none of the client's calls, sent by
// send until stop: notifications, and requests for which it has to answer with a response (see
// [Conn.Handle]). Of several streams the last one is used, as a message may go out on one only. send is
// called by goroutines of the connection and may block; where it fails the next one is tried.
func (c *Conn) Listen(send Send) (stop func()) {
	s := &stream{send}
	c.mu.Lock()
	c.streams = append(c.streams, s)
	c.mu.Unlock()
	c.own.wake() // what could not be told before
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams = slices.DeleteFunc(c.streams, func(x *stream) bool { return x == s })
	}
}

// tell sends a message that belongs to no call.
func (c *Conn) tell(message []byte) error {
	c.mu.Lock()
	streams := slices.Clone(c.streams)
	c.mu.Unlock()
	err := errNoStream
	for _, s := range slices.Backward(streams) {
		if err = s.send(message, nil); err == nil {
			return nil
		}
	}
	return err
}
