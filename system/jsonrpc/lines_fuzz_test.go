package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// FuzzLines has an input cut into the same lines whatever pieces it comes in, none of them blank, with an end or too
// long.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "\n", "{}\n{}\n", "{}\r\n\r\n{}", "\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n", "a\n" + string(
		bytes.Repeat([]byte("x"), 200),
	) + "\nb", " \t\n \n", "\x00\n"} {
		f.Add([]byte(s), uint8(64))
	}
	read := func(t *testing.T, in io.Reader, max int64) (lines []string) {
		for r := NewLineReader(in, max); ; {
			line, err := r.Next()
			var long *TooLongError
			switch {
			case errors.As(err, &long):
				if long.Size <= max {
					t.Errorf("%d bytes are too long", long.Size)
				}
				lines = append(lines, "too long: "+string(long.Prefix))
				continue
			case errors.Is(err, io.EOF):
				return lines
			case err != nil:
				t.Fatal(err)
			}
			if len(line) == 0 || int64(len(line)) > max || bytes.ContainsAny(line, "\n") {
				t.Errorf("a line %q", line)
			}
			lines = append(lines, string(line))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, max uint8) {
		whole := read(t, bytes.NewReader(in), int64(max)+1)
		pieces := read(t, iotest.OneByteReader(bytes.NewReader(in)), int64(max)+1)
		expect.EqualList(t, whole, pieces, "pieces")
	})
}
