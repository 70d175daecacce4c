package content

import (
	"context"
	"io"
)

// window is the size of the read buffer, in bytes.
const window = 64 << 10

// pump reads r to its end and calls take with each block of at most 64 KiB. It stops early if take returns enough or
// an error. ended reports whether the end of r was reached.
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
