package capture

import (
	"bytes"
	"io"
)

// hold is the beginning of an output, at most limit bytes, in case it is shown whole or recorded later.
type hold struct {
	limit    int
	shown    []byte // with its secrets masked
	plain    []byte // before they were masked, if forked
	forked   bool   // a secret was masked, so shown and plain differ
	encoded  []byte // as written, if the output is not UTF-8
	overflow bool   // the output is longer than limit
}

// plainReader reads what is held, without masks.
func (h *hold) plainReader() io.ReaderAt {
	if h.forked {
		return bytes.NewReader(h.plain)
	}
	return bytes.NewReader(h.shown)
}

// add appends a text, and the same text with its secrets masked.
func (h *hold) add(plain, shown []byte) {
	if h.overflow {
		return
	}
	h.overflow = max(len(h.shown)+len(shown), len(h.plain)+len(plain)) > h.limit
	h.shown = append(h.shown, shown[:min(h.limit-len(h.shown), len(shown))]...)
	if h.forked {
		h.plain = append(h.plain, plain[:min(h.limit-len(h.plain), len(plain))]...)
	}
}

func (h *hold) addEncoded(b []byte) {
	if !h.overflow {
		h.encoded = append(h.encoded, b...)
	}
}

// asStored returns what is held in the form in which it is recorded.
func (h *hold) asStored(decoded, redact bool) []byte {
	switch {
	case decoded && !redact:
		return h.encoded
	case h.forked:
		return h.plain
	}
	return h.shown
}
