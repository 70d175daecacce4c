package summary

import (
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/cutoff"
)

// tailBytes is how much of the end of NDJSON is held before it is checked.
const tailBytes = 256 << 10

// standIn is held in place of the records before the last: a text of several values is told otherwise than one of one.
const standIn = "[] "

// tail checks NDJSON from its last records on. What came before was scanned and is right, and where it is not the
// report of the last records is that of the whole, but for numbers and offsets: reading everything twice would
// take twice the time.
type tail struct {
	offset int64 // bytes read
	base   int64 // what is held begins there
	before int64 // records that it does not hold
	held   []byte
	check  *cutoff.Checker // in place of held, once that is long or the text is broken
	fixed  bool            // broken: all that is left goes to check
}

// add takes a piece that s has read; mark is what of it was a byte order mark.
func (t *tail) add(p []byte, s *scan, mark int) {
	from := t.offset
	t.offset += int64(len(p))
	if t.fixed {
		_, _ = t.check.Write(p)
		return
	}
	t.fixed = s.dead || s.broken > 0
	if at := s.lastAt + int64(mark); !t.fixed && s.values > 1 && at >= from {
		t.base, t.before = at-int64(len(standIn)), s.values-2
		t.held = append(append(t.held[:0], standIn...), p[at-from:]...)
		t.check = nil
		return
	}
	if t.check == nil && !t.fixed && len(t.held)+len(p) <= tailBytes {
		t.held = append(t.held, p...)
		return
	}
	t.start()
	_, _ = t.check.Write(p)
}

func (t *tail) start() {
	if t.check == nil {
		t.check = cutoff.NewChecker()
		_, _ = t.check.Write(t.held)
		t.held = nil
	}
}

// close is the report of the whole text.
func (t *tail) close() cutoff.Report {
	t.start()
	r := t.check.Close()
	if t.base == 0 && t.before == 0 {
		return r
	}
	r.Values += t.before
	r.Elements += t.before
	r.Offset += t.base
	r.LastStart += t.base
	r.LastEnd += t.base
	r.PieceStart += t.base
	r.Pointer = shifted(r.Pointer, t.before)
	r.LastPointer = shifted(r.LastPointer, t.before)
	return r
}

// shifted adds to the number of the record with which a pointer begins.
func shifted(pointer string, by int64) string {
	if pointer == "" {
		return ""
	}
	first, rest, more := strings.Cut(pointer[1:], "/")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return pointer
	}
	out := "/" + number(n+by)
	if more {
		out += "/" + rest
	}
	return out
}
