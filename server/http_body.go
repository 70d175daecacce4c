package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// read takes the body in, within its time and within what all bodies together may take.
func (h *web) read(w http.ResponseWriter, r *http.Request, owner string) ([]byte, *refusal) {
	if full := h.arriving.enter(owner); full != nil {
		return nil, busy("the messages that are arriving, %s, are its share; send them whole, then try again", full)
	}
	defer h.arriving.leave(owner)
	rc, end := http.NewResponseController(w), time.Now().Add(bodyTime)
	size := max(r.ContentLength, 0)
	body := make([]byte, 0, min(size, freeBody)+512)
	fail := func(no *refusal) ([]byte, *refusal) {
		h.bodies.give(owner, len(body))
		no.close = true
		return nil, no
	}
	for {
		if len(body) == cap(body) {
			body = slices.Grow(body, min(max(len(body), freeBody), int(h.server.maxMessage)))
		}
		silent := time.Now().Add(h.silence)
		_ = rc.SetReadDeadline(earlier(silent, end))
		n, err := r.Body.Read(body[len(body):min(cap(body), len(body)+freeBody)])
		grown := h.bodies.take(owner, len(body), n)
		body = body[:len(body)+n]
		var large *http.MaxBytesError
		switch {
		case !grown:
			body = body[:len(body)-n]
			return fail(refusef(http.StatusServiceUnavailable, "busy: too many large messages at once; try again"))
		case errors.Is(err, io.EOF):
			// From here on a read of the connection waits for nothing but its end.
			_ = rc.SetReadDeadline(time.Time{})
			return body, nil
		case errors.As(err, &large):
			return fail(tooLarge(h.server.maxMessage))
		case err != nil:
			return fail(h.broken(r, err))
		}
	}
}

// broken words why a body did not arrive.
func (h *web) broken(r *http.Request, err error) *refusal {
	var network net.Error
	if len(r.TransferEncoding) > 0 && !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return refusef(http.StatusBadRequest, "the chunked body is malformed: %s", echo(err.Error()))
	}
	return refusef(http.StatusBadRequest, "the message did not arrive whole: it may take %s, and pause for %s", bodyTime, h.silence)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// freeBody is how much of a body is taken whatever else there is, in bytes, so that ping and cancelled are never refused.
const freeBody = 32 << 10

// budget bounds what all bodies hold at once, but for the first freeBody bytes of each.
type budget struct {
	mu        sync.Mutex
	held, max int64
}

// take adds n bytes to a body that has have.
func (b *budget) take(have, n int) bool {
	over := int64(max(have+n-freeBody, 0) - max(have-freeBody, 0))
	if over == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+over > b.max {
		return false
	}
	b.held += over
	return true
}

func (b *budget) give(size int) {
	if over := int64(size - freeBody); over > 0 {
		b.mu.Lock()
		b.held -= over
		b.mu.Unlock()
	}
}

// bodies is the budget of all, and of each identity where there are several: three quarters of it.
type bodies struct {
	all budget
	own map[string]*budget // not changed while it is used
}

func (b *bodies) share(of []credential) {
	b.own = map[string]*budget{}
	for _, c := range of {
		b.own[c.owner] = &budget{max: b.all.max / 4 * 3}
	}
}

// take adds n bytes to a body of the identity that has have.
func (b *bodies) take(owner string, have, n int) bool {
	own := b.own[owner]
	if own != nil && !own.take(have, n) {
		return false
	}
	if b.all.take(have, n) {
		return true
	}
	if own != nil { // of the n, those that are not free
		own.give(freeBody + max(have+n-freeBody, 0) - max(have-freeBody, 0))
	}
	return false
}

func (b *bodies) give(owner string, size int) {
	if own := b.own[owner]; own != nil {
		own.give(size)
	}
	b.all.give(size)
}
