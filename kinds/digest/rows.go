package digest

import "bytes"

// LineBytes is the number of bytes kept of each line. The start of a line is enough to identify it, and a line of 1
// GB must not be held in memory.
const LineBytes = 4 << 10

// LineSplitter splits the bytes written to it into lines.
type LineSplitter struct {
	// Visit is called for each line. line has no line ending and at most LineBytes bytes; size is the full size in bytes.
	Visit func(line []byte, size int64)
	// Skip, unless nil, is called before each line. It may skip whole lines at the start of p: it must add their count
	// to Number and return their length in bytes.
	Skip    func(p []byte) int
	Number  int64 // number of the current line, from 1
	held    []byte
	InPlace bool  // the current line lies completely inside the block passed to Write
	size    int64 // size of the incomplete line so far
}

func (r *LineSplitter) Write(p []byte) {
	for len(p) > 0 {
		if r.Skip != nil && r.size == 0 {
			if p = p[r.Skip(p):]; len(p) == 0 {
				return
			}
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			r.hold(p)
			return
		}
		if r.size == 0 {
			r.InPlace = true
			r.emit(p[:end], int64(end))
			r.InPlace = false
		} else {
			r.hold(p[:end])
			r.flush()
		}
		p = p[end+1:]
	}
}

func (r *LineSplitter) hold(p []byte) {
	r.size += int64(len(p))
	if room := LineBytes - len(r.held); room > 0 {
		r.held = append(r.held, p[:min(room, len(p))]...)
	}
}

func (r *LineSplitter) flush() {
	line, size := r.held, r.size
	r.held, r.size = r.held[:0], 0
	r.emit(line, size)
}

func (r *LineSplitter) emit(line []byte, size int64) {
	r.Number++
	line = line[:min(len(line), LineBytes)]
	if size == int64(len(line)) && size > 0 && line[size-1] == '\r' {
		line = line[:size-1]
		size--
	}
	r.Visit(line, size)
}

// Close visits a last line that has no line ending.
func (r *LineSplitter) Close() {
	if r.size > 0 {
		r.flush()
	}
}

// WithoutMark returns the beginning of a text without its byte order mark.
func WithoutMark(p []byte) []byte { return bytes.TrimPrefix(p, []byte("\xef\xbb\xbf")) }

// EqualLines returns how many lines from b[at] on equal the one of size bytes before it. Most are compared many at a
// time.
func EqualLines(b []byte, at, size int) (n int64) {
	for _, lines := range []int{1 + 16<<10/size, 1 + 512/size, 1} {
		for step := lines * size; at+step <= len(b) && bytes.Equal(b[at:at+step], b[at-size:at-size+step]); at += step {
			n += int64(lines)
		}
	}
	return n
}
