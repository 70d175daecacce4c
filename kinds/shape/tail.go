package shape

import (
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
)

// tailBytes is the number of bytes at the end of NDJSON that are buffered before a Checker reads them.
const tailBytes = 256 << 10

// placeholder replaces the records before the last complete one, because the Checker reports a text of several values
// differently from a text of one value.
const placeholder = "[] "

// tail checks only the last records of NDJSON. scan has already accepted the records before them, so the report of
// the last records equals that of the whole text except for record numbers and offsets. Checking everything again
// would take twice the time.
type tail struct {
	offset int64 // number of bytes read
	base   int64 // offset of the start of held in the text
	before int64 // number of records before the one that placeholder represents in held
	held   []byte
	check  *jsontrunc.Checker // replaces held once held is too long or the text is broken
	fixed  bool               // the text is broken: check must read the whole rest
}

// add reads block p, which s has already scanned. mark is the length of the byte order mark in bytes.
func (t *tail) add(p []byte, s *scan, mark int) {
	from := t.offset
	t.offset += int64(len(p))
	if t.fixed {
		_, _ = t.check.Write(p)
		return
	}
	t.fixed = s.stopped || s.broken > 0
	if at := s.lastAt + int64(mark); !t.fixed && s.values > 1 && at >= from {
		t.base, t.before = at-int64(len(placeholder)), s.values-2
		t.held = append(append(t.held[:0], placeholder...), p[at-from:]...)
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

// start creates the Checker, unless it exists, and passes the held bytes to it.
func (t *tail) start() {
	if t.check == nil {
		t.check = jsontrunc.NewChecker()
		_, _ = t.check.Write(t.held)
		t.held = nil
	}
}

// close returns the report of the whole text.
func (t *tail) close() jsontrunc.Report {
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

// shifted adds a number to the record number at the start of a JSON pointer.
func shifted(pointer string, by int64) string {
	if pointer == "" {
		return ""
	}
	first, rest, more := strings.Cut(pointer[1:], "/")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return pointer
	}
	out := "/" + digest.Number(n+by)
	if more {
		out += "/" + rest
	}
	return out
}
