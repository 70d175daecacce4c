package content

import (
	"context"
	"io"
)

// window is the size of the read buffer, in bytes.
const window = 64 << 10

// pump reads r to its end and calls process with each block of at most 64 KiB. It stops early if process returns
// enough or an error. ended reports whether the end of r was reached.
func pump(ctx context.Context, r io.Reader, process func(p []byte) (enough bool, err error)) (ended bool, err error) {
	buf := make([]byte, window)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := r.Read(buf)
		if n > 0 {
			if enough, err := process(buf[:n]); enough || err != nil {
				return false, err
			}
		}
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// scanner is a [Scanner] or a [Tracker].
type scanner interface {
	Scan(p []byte) (int, Event)
	Err() error
}

// scanEvents reads JSON from r to its end or to an error, and calls event for each event of s and at the end of each
// block; used are the bytes consumed since the previous call. It stops early if event returns enough. ended reports
// whether the end of r was reached: then the caller must call End.
func scanEvents(
	ctx context.Context, r io.Reader, s scanner, event func(used []byte, e Event) (enough bool),
) (ended bool, err error) {
	return pump(ctx, r, func(p []byte) (bool, error) {
		for len(p) > 0 {
			n, e := s.Scan(p)
			if event(p[:n], e) {
				return true, nil
			}
			if err := s.Err(); err != nil {
				return false, err
			}
			p = p[n:]
		}
		return false, nil
	})
}
