package summary

import "bytes"

// lineBytes is how much of a line is looked at. What identifies a line stands at its
// start; a line of 1 GB must not be held.
const lineBytes = 4 << 10

// rows cuts what is written to it into lines.
type rows struct {
	visit  func(line []byte, size int64) // the line without its end, at most lineBytes of it; its whole size
	ahead  func(p []byte) int            // passes over whole lines at p's beginning, which it counts in number; nil: over none
	number int64                         // of the line being visited, from 1
	held   []byte
	inside bool  // the line being visited stands in the piece being written, all of it
	size   int64 // of the line that is not complete yet
}

func (r *rows) write(p []byte) {
	for len(p) > 0 {
		if r.ahead != nil && r.size == 0 {
			if p = p[r.ahead(p):]; len(p) == 0 {
				return
			}
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			r.hold(p)
			return
		}
		if r.size == 0 {
			r.inside = true
			r.emit(p[:end], int64(end))
			r.inside = false
		} else {
			r.hold(p[:end])
			r.flush()
		}
		p = p[end+1:]
	}
}

func (r *rows) hold(p []byte) {
	r.size += int64(len(p))
	if room := lineBytes - len(r.held); room > 0 {
		r.held = append(r.held, p[:min(room, len(p))]...)
	}
}

func (r *rows) flush() {
	line, size := r.held, r.size
	r.held, r.size = r.held[:0], 0
	r.emit(line, size)
}

func (r *rows) emit(line []byte, size int64) {
	r.number++
	if len(line) > lineBytes {
		line = line[:lineBytes]
	}
	if size == int64(len(line)) && size > 0 && line[size-1] == '\r' {
		line = line[:size-1]
		size--
	}
	r.visit(line, size)
}

// close visits a last line that has no end.
func (r *rows) close() {
	if r.size > 0 {
		r.flush()
	}
}
