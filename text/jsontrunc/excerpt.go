package jsontrunc

import (
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// excerptEnd is how many bytes of each end of a long text are stored: both ends and the words between them take less
// than 4 KiB.
const excerptEnd = 2000

// excerpt stores the offsets of a range of the text, and its first and last bytes.
type excerpt struct {
	start, end int64
	head, tail []byte
}

func (x *excerpt) begin(at int64) {
	x.start, x.end = at, at
	x.head, x.tail = x.head[:0], x.tail[:0]
}

// add extends the range by p.
func (x *excerpt) add(p []byte) {
	x.end += int64(len(p))
	if room := excerptEnd - len(x.head); room > 0 {
		n := min(room, len(p))
		x.head = append(x.head, p[:n]...)
		p = p[n:]
	}
	if len(p) >= excerptEnd {
		x.tail = append(x.tail[:0], p[len(p)-excerptEnd:]...)
		return
	}
	if len(x.tail)+len(p) > 2*excerptEnd { // move the bytes back only once in a while
		x.tail = x.tail[:copy(x.tail, x.tail[len(x.tail)-excerptEnd:])]
	}
	x.tail = append(x.tail, p...)
}

// text returns the whole range if it is short, else its two ends and the number of bytes between them.
func (x *excerpt) text() string {
	if x.end-x.start <= 2*excerptEnd {
		return string(x.head) + string(x.tail)
	}
	head, tail := x.head, x.tail[len(x.tail)-excerptEnd:]
	head, tail = head[:runes.Complete(head)], runes.TrimStart(tail)
	left := x.end - x.start - int64(len(head)+len(tail))
	return fmt.Sprintf("%s… %d bytes …%s", head, left, tail)
}
