package continuation

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	// maxIdle is how many parts in a row may bring no new text.
	maxIdle = 2
	// A string that ends with loopTimes times the same loopMin to loopMax bytes is a loop.
	loopTimes = 3
	loopMin   = 32
	loopMax   = 4096
)

// history is what the stop rules need to know of the parts that arrived.
type history struct {
	Parts []uint64 `json:"parts,omitempty"` // a hash of each
	Idle  int      `json:"idle,omitempty"`  // parts at the end that brought no new text
	Size  int64    `json:"size,omitempty"`  // of the text after the last part
}

// loop returns why the document is stuck if this part is taken; "" if it is not.
func (h *history) loop(part []byte, limit int) string {
	if n := slices.Index(h.Parts, hashOf(bytes.TrimSpace(part))); n >= 0 {
		return fmt.Sprintf("this part is the same as part %d", n+1)
	}
	if len(h.Parts) >= limit {
		return fmt.Sprintf("%d parts have arrived, which is the limit", len(h.Parts))
	}
	return ""
}

// add counts a part. It keeps the hashes of no more parts than are allowed.
func (h *history) add(part []byte, joined bool, limit int) {
	if len(h.Parts) < limit {
		h.Parts = append(h.Parts, hashOf(bytes.TrimSpace(part)))
	}
	if !joined {
		h.Idle++
	}
}

// grew counts a part that was joined.
func (h *history) grew(size int64) {
	if size > h.Size {
		h.Idle = 0
	} else {
		h.Idle++
	}
	h.Size = size
}

// idle returns why the document is stuck, if the last parts brought no new text.
func (h *history) idle() string {
	if h.Idle < maxIdle {
		return ""
	}
	return fmt.Sprintf("the last %d parts brought no new text", h.Idle)
}

// loops returns why the document is stuck, if it ends inside of a string with the same text several times. Rulers
// and indentation are no loops, nor are equal records.
func (d *Document) loops() string {
	if d.plain || d.parser.scan.Inside() != "string" {
		return ""
	}
	s := d.text[d.parser.value+1:]
	s = s[max(0, len(s)-loopTimes*loopMax):]
	for n := loopMin; n*loopTimes <= len(s); n++ {
		t := s[len(s)-n*loopTimes:]
		if bytes.Equal(t[n:], t[:len(t)-n]) {
			if period := t[:n]; strings.ContainsFunc(unquote(period), isWordRune) {
				return fmt.Sprintf("the text repeats itself: %q, at least %d times", clip(string(period), 60), loopTimes)
			}
			return ""
		}
	}
	return ""
}
