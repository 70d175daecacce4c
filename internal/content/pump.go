package content

import (
	"context"
	"io"
)

// window is how much is read at a time.
const window = 64 << 10

// pump hands r to take, a window at a time, until take says that it has
// enough or r ends; ended says which.
func pump(ctx context.Context, r io.Reader, take func(p []byte) (enough bool, err error)) (ended bool, err error) {
	buf := make([]byte, window)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := r.Read(buf)
		if n > 0 {
			if enough, err := take(buf[:n]); enough || err != nil {
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
