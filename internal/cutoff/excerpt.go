package cutoff

import (
	"fmt"
	"unicode/utf8"
)

// half is what is kept of each end of a long text, so that both, and what is said between them, stay below 4 KiB.
const half = 2000

// excerpt is a part of the text: where it is, and its two ends.
type excerpt struct {
	start, end int64
	head, tail []byte
}

func (x *excerpt) begin(at int64) {
	x.start, x.end = at, at
	x.head, x.tail = x.head[:0], x.tail[:0]
}

// add goes on with p.
func (x *excerpt) add(p []byte) {
	x.end += int64(len(p))
	if room := half - len(x.head); room > 0 {
		n := min(room, len(p))
		x.head = append(x.head, p[:n]...)
		p = p[n:]
	}
	if len(p) >= half {
		x.tail = append(x.tail[:0], p[len(p)-half:]...)
		return
	}
	if len(x.tail)+len(p) > 2*half { // moved back only now and then
		x.tail = x.tail[:copy(x.tail, x.tail[len(x.tail)-half:])]
	}
	x.tail = append(x.tail, p...)
}

// text is all of it where it is short, else its ends with how much is left out.
func (x *excerpt) text() string {
	if x.end-x.start <= 2*half {
		return string(x.head) + string(x.tail)
	}
	head, tail := x.head, x.tail[len(x.tail)-half:]
	for i := 1; i < utf8.UTFMax && i < len(head); i++ {
		if last := head[len(head)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	left := x.end - x.start - int64(len(head)+len(tail))
	return fmt.Sprintf("%s… %d bytes …%s", head, left, tail)
}
