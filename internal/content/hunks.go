package content

import (
	"bytes"
	"context"
	"io"
)

// hunks visits the hunks of a diff, unified or combined (a merge's): from "@@" to its last line, without that line's end. Lines are
// taken by the counts of the header, so that a removed line "-- x", shown as "--- x", is not a file's header.
func hunks(ctx context.Context, r io.Reader, visit func(index int64, at Span) bool) error {
	var h hunkScanner
	ended, err := pump(ctx, r, func(p []byte) (bool, error) { return !h.scan(p, visit), nil })
	if !ended || err != nil {
		return err
	}
	if h.off > h.lineStart {
		if !h.line(h.off, visit) {
			return nil
		}
	}
	if h.open {
		visit(h.index, Span{h.start, h.last})
	}
	return nil
}

type hunkScanner struct {
	off       int64
	lineStart int64
	prefix    []byte // of the line, up to 256 bytes: more than any header's numbers
	index     int64

	open  bool
	start int64   // of the hunk
	last  int64   // end of its last line
	old   []int64 // lines of each parent that are still to come
	new   int64   // lines of the result
}

func (h *hunkScanner) scan(p []byte, visit func(int64, Span) bool) bool {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		text := p
		if n >= 0 {
			text = p[:n]
		}
		h.prefix = append(h.prefix, text[:min(len(text), 256-len(h.prefix))]...)
		h.off += int64(len(text))
		if n < 0 {
			return true
		}
		if !h.line(h.off, visit) {
			return false
		}
		h.off++
		h.lineStart = h.off
		p = p[n+1:]
	}
	return true
}

// line takes the line that ends before end.
func (h *hunkScanner) line(end int64, visit func(int64, Span) bool) bool {
	line := h.prefix
	h.prefix = h.prefix[:0]
	if h.open && h.belongs(line) {
		h.last = end
		return true
	}
	if h.open {
		h.open = false
		h.index++
		if !visit(h.index-1, Span{h.start, h.last}) {
			return false
		}
	}
	if old, added, ok := hunkHeader(line, h.old[:0]); ok {
		h.open, h.old, h.new = true, old, added
		h.start, h.last = h.lineStart, end
	}
	return true
}

// belongs says whether the next line is part of the open hunk, and counts it.
func (h *hunkScanner) belongs(line []byte) bool {
	if len(line) > 0 && line[0] == '\\' { // "\ No newline at end of file"
		return true
	}
	left := h.new > 0
	for _, n := range h.old {
		left = left || n > 0
	}
	if !left {
		return false
	}
	// A blank line is a context line whose blank was trimmed on the way.
	columns := line[:min(len(line), len(h.old))]
	removed := false
	for _, c := range columns {
		switch c {
		case '-':
			removed = true
		case '+', ' ':
		case '\r':
			columns = columns[:0]
		default:
			return false
		}
	}
	for i := range h.old {
		switch {
		case i >= len(columns), columns[i] == '-', columns[i] == ' ' && !removed:
			h.old[i]--
		}
	}
	if !removed {
		h.new--
	}
	return true
}

// hunkHeader takes "@@ -1,2 +3,4 @@", with one more @ and one more range for each further parent of a merge.
func hunkHeader(line []byte, old []int64) (_ []int64, added int64, ok bool) {
	at := 0
	for at < len(line) && line[at] == '@' {
		at++
	}
	if at < 2 || at > 64 {
		return old, 0, false
	}
	rest := line[at:]
	for range at - 1 {
		var n int64
		if n, rest, ok = hunkRange(rest, '-'); !ok {
			return old, 0, false
		}
		old = append(old, n)
	}
	if added, rest, ok = hunkRange(rest, '+'); !ok {
		return old, 0, false
	}
	rest, ok = bytes.CutPrefix(rest, []byte{' '})
	return old, added, ok && bytes.HasPrefix(rest, line[:at])
}

// hunkRange takes " -1,2" (how many lines: 2) or " -1" (1).
func hunkRange(p []byte, sign byte) (lines int64, rest []byte, ok bool) {
	if len(p) < 3 || p[0] != ' ' || p[1] != sign {
		return 0, p, false
	}
	_, rest, ok = digits(p[2:])
	if !ok {
		return 0, p, false
	}
	if len(rest) > 0 && rest[0] == ',' {
		return digits(rest[1:])
	}
	return 1, rest, true
}

// digits takes up to 18 digits.
func digits(p []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(p) && i < 18 && p[i]-'0' < 10 {
		n = n*10 + int64(p[i]-'0')
		i++
	}
	return n, p[i:], i > 0
}
