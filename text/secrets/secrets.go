// Package secrets finds credentials in a text by their published formats and replaces each by a short mask.
//
// It is best effort: a secret without a known format, or a truncated or encoded secret, is not found.
// It masks text for display, never a tool's stored output; callers decide which texts to mask.
//
//	text ─► pre-filter (one pass for all keywords) ─► matcher of that keyword ─► check ─► mask
//
// The pre-filter searches for a gram of each keyword: four bytes of the keyword, without regard to case. Each matcher
// reads a bounded number of bytes, and the search continues after the finding, so that any input takes linear time.
package secrets

import (
	"encoding/json"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
)

// Unsearched replaces a text whose search panicked. It counts as one secret.
const Unsearched = "[masked: this text could not be searched for secrets]"

// Masker masks secrets. A nil Masker masks nothing; the zero Masker has no filter, so that each text becomes
// [Unsearched]. It is safe for concurrent use.
type Masker struct {
	f       func() *filter              // returns the filter; the first call builds it
	onPanic func(why any, stack []byte) // called after a panic; may be nil
	before  string                      // stands before a JSON string that is a text of its own; see [Masker.ForCall]
}

// New returns a masker of all [Formats].
func New() *Masker { return &Masker{f: defaultFilter} }

// maxPublic is the maximum length, in bytes, of the public prefix that a mask shows.
const maxPublic = 16

// appendMask appends the mask of a secret: [masked: NAME PREFIX… N chars].
func appendMask(dst []byte, f *Format, public []byte, chars int) []byte {
	dst = append(append(dst, "[masked: "...), f.Name...)
	if n := min(len(public), maxPublic); n > 0 {
		dst = append(append(append(dst, ' '), public[:n]...), "…"...)
	}
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(chars), 10)
	return append(dst, " chars]"...)
}

// maskedLine replaces each line after the first of a secret of several lines.
const maskedLine = "[masked]"

// OnPanic returns a copy of the masker that calls the given function, with the panic value and the stack, if the
// search of a text panics.
func (m *Masker) OnPanic(to func(why any, stack []byte)) *Masker {
	if m == nil {
		return nil
	}
	return &Masker{m.f, to, m.before}
}

// lastName matches the name at the end of a filter or a pointer.
var lastName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[./]"?([\w-]+)"?\]?\??\s*$`) })

// ForCall returns a masker for the answer to a call with these arguments. If its filter or its pointer, at, ends with a
// name, as .db.password or /db/password, a row that is one JSON string is masked as if that name stood before it.
func (m *Masker) ForCall(args json.RawMessage) *Masker {
	var a struct{ Filter, At any }
	if m == nil || json.Unmarshal(args, &a) != nil {
		return m
	}
	for _, path := range []any{a.Filter, a.At} {
		text, _ := path.(string)
		if name := lastName().FindStringSubmatch(text); name != nil {
			return &Masker{m.f, m.onPanic, `"` + name[1] + `": `}
		}
	}
	return m
}

// failClosed must be deferred. If the search of a text panicked, it reports the panic and calls closed, which sets the
// results.
func (m *Masker) failClosed(closed func()) {
	why := recover()
	if why == nil {
		return
	}
	if m.onPanic != nil {
		m.onPanic(why, debug.Stack())
	}
	closed()
}
