package linesearch

import (
	"bytes"
	"encoding/binary"
)

// hits holds the matching lines of a block.
type hits struct {
	at    []uint32 // the position of the last byte of each line, in order
	lines int64    // number of all lines of the block; 0 if not counted

	letters bool // see Totals.Letters
}

func (h *hits) add(at int) { h.at = append(h.at, uint32(at)) }

// lanes is the number of parts of a block that one goroutine walks in lockstep. Each step waits about five cycles for
// the table, so a single lane leaves most of the processor idle. The row "tree: search, a class without literal" of
// docs/SPEED.md needs the lanes: one lane takes twice as long.
const lanes = 4

// walkBlock finds the matching lines of b, which ends with a newline. It calls matches, which uses regexp, for a line
// (including its newline) that the automaton cannot decide. walkBlock returns false and leaves h unchanged if the
// automaton was abandoned or the context has ended.
func (w *walker) walkBlock(b []byte, h *hits, matches func(line []byte) (bool, error)) (bool, error) {
	x := blockWalk{walker: w, b: b, matches: matches}
	x.lane[0] = lane{end: len(b), hits: hits{at: h.at}}
	w.q[0] = w.start
	skipped := w.skipped
	ok, err := x.walkLane(0, probeLines)
	if ok && err == nil && w.skipped-skipped <= x.lane[0].from/4*3 {
		ok, err = x.splitLanes()
	}
	for i := range x.lane {
		if ok && err == nil {
			ok, err = x.walkLane(i, len(b))
		}
	}
	if !ok || err != nil {
		return ok, err
	}
	h.at = x.lane[0].at
	for i := 1; i < lanes; i++ {
		h.at = append(h.at, x.lane[i].at...)
	}
	return true, nil
}

// probeLines is the number of lines at the start of a block that one lane walks first to measure how early lines match.
// If three quarters of their bytes follow a match, skipping from line to line is faster than four lanes.
const probeLines = 16

// blockWalk is one run of the automaton over a block. The state of a lane is walker.q.
type blockWalk struct {
	*walker
	b       []byte
	matches func(line []byte) (bool, error)
	lane    [lanes]lane
}

// lane is a part of the block that consists of whole lines.
type lane struct {
	hits
	from int // the next position to walk
	end  int
}

// splitLanes divides the rest of the first lane into lanes, and walks all lanes up to the length of the shortest.
func (x *blockWalk) splitLanes() (bool, error) {
	from := x.lane[0].from
	part, n := (len(x.b)-from)/lanes, len(x.b)
	for i := range x.lane {
		end := len(x.b)
		if i < lanes-1 {
			end = lineEnd(x.b, max(min(from+part, end)-1, 0))
		}
		x.lane[i].from, x.lane[i].end, x.q[i] = from, end, x.start
		n = min(n, end-from)
		from = end
	}
	return x.walkLanes(n)
}

// walkLanes walks the first n bytes of all lanes.
func (x *blockWalk) walkLanes(n int) (bool, error) {
	t, class, event := x.trans, &x.class, x.event
	b0, b1 := x.b[x.lane[0].from:][:n], x.b[x.lane[1].from:][:n]
	b2, b3 := x.b[x.lane[2].from:][:n], x.b[x.lane[3].from:][:n]
	q0, q1, q2, q3 := x.q[0], x.q[1], x.q[2], x.q[3]
	for i := range b0 {
		a0 := t[q0+uint32(class[b0[i]])]
		a1 := t[q1+uint32(class[b1[i]])]
		a2 := t[q2+uint32(class[b2[i]])]
		a3 := t[q3+uint32(class[b3[i]])]
		if a0 < event || a1 < event || a2 < event || a3 < event {
			x.q = [lanes]uint32{q0, q1, q2, q3}
			if ok, err := x.handleEvents(i); !ok || err != nil {
				return ok, err
			}
			t, q0, q1, q2, q3 = x.trans, x.q[0], x.q[1], x.q[2], x.q[3]
			continue
		}
		q0, q1, q2, q3 = a0, a1, a2, a3
	}
	x.q = [lanes]uint32{q0, q1, q2, q3}
	for i := range x.lane {
		x.lane[i].from += n
	}
	x.seen += n * lanes
	return true, nil
}

// handleEvents steps each lane over its byte i if at least one lane needs a new state or has reached the end of a line.
// It returns false if the automaton was abandoned or the context has ended.
func (x *blockWalk) handleEvents(i int) (bool, error) {
	for missing := true; missing; { // again if the table was cleared meanwhile
		missing = false
		for k := range x.lane {
			b := x.b[x.lane[k].from+i]
			if x.trans[x.q[k]+uint32(x.class[b])] != rowUnknown {
				continue
			}
			missing = true
			if _, ok := x.addTransition(k, b, i*lanes); !ok {
				return false, nil
			}
		}
	}
	for k := range x.lane {
		at := x.lane[k].from + i
		x.q[k] = x.trans[x.q[k]+uint32(x.class[x.b[at]])]
		if err := x.lineEnded(k, at); err != nil {
			return true, err
		}
	}
	return true, nil
}

// ctxCheckWork is the number of instructions visited between two context checks. They take a few milliseconds.
const ctxCheckWork = 1 << 20

// checkContext returns the error of the context. It checks the context only once per ctxCheckWork instructions.
func (w *walker) checkContext() error {
	if w.work < ctxCheckWork {
		return nil
	}
	w.work = 0
	return w.ctx.Err()
}

// lineEnded starts the next line of lane k if its last step, over the byte at position at, has ended a line that
// matches or may match. It records a line that matches.
func (x *blockWalk) lineEnded(k, at int) error {
	to := x.q[k]
	if to >= x.event {
		return nil
	}
	x.q[k] = x.start
	if to == x.row(rowAskRegexp) {
		start := lastNewline(x.b[:at]) + 1
		ok, err := x.matches(x.b[start : at+1])
		if !ok || err != nil {
			return err
		}
	}
	x.lane[k].add(at)
	return nil
}

// walkLane walks one lane over at most the given number of lines.
func (x *blockWalk) walkLane(k, most int) (bool, error) {
	l := &x.lane[k]
	for n := 0; n < most && l.from < l.end; n++ {
		at, ok := x.walkLine(x.b[:l.end], l.from, k)
		if !ok {
			return false, nil
		}
		l.from = at + 1
		if err := x.lineEnded(k, at); err != nil {
			return true, err
		}
	}
	return true, nil
}

// walkLine walks lane k from position from to the end of the line, and returns the position of the newline. The state
// is then rowHit, rowAskRegexp or the start. Once a line is known to match, walkLine skips to its end.
func (w *walker) walkLine(b []byte, from, k int) (at int, ok bool) {
	at, ok = w.walk(b, from, k)
	if q := w.q[k]; ok && (q == w.row(rowMatched) || q == w.row(rowInvalidUTF8)) {
		n := bytes.IndexByte(b[at:], '\n')
		w.skipped += n
		w.q[k] = w.trans[q+uint32(w.class['\n'])]
		at += n
	}
	return at, ok
}

// walk walks lane k from position from of b, and stops after a byte that leads to a fixed row: the line is known to
// match, cannot be decided, or has ended. It returns the position of that byte, or len(b). ok is false if the automaton
// was abandoned or the context has ended.
func (w *walker) walk(b []byte, from, k int) (at int, ok bool) {
	t, class, ended, q := w.trans, &w.class, w.ended, w.q[k]
	for i := from; i < len(b); i++ {
		to := t[q+uint32(class[b[i]])]
		if to >= ended {
			q = to
			continue
		}
		if to == rowUnknown {
			w.q[k] = q
			if to, ok = w.addTransition(k, b[i], i-from); !ok {
				return i, false
			}
			t = w.trans
		}
		if q = to; q < ended {
			w.q[k] = q
			w.seen += i + 1 - from
			return i, true
		}
	}
	w.q[k] = q
	w.seen += len(b) - from
	return len(b), true
}

// lastNewline is bytes.LastIndexByte for a newline. It compares eight bytes at a time; LastIndexByte compares one.
func lastNewline(b []byte) int {
	i := len(b)
	for ; i >= 8; i -= 8 {
		w := binary.LittleEndian.Uint64(b[i-8:]) ^ 0x0a0a0a0a0a0a0a0a
		if (w-0x0101010101010101)&^w&0x8080808080808080 != 0 {
			break
		}
	}
	return bytes.LastIndexByte(b[:i], '\n')
}

var newline = []byte{'\n'}

// lineEnd returns the position after the first newline at or after from, or len(b).
func lineEnd(b []byte, from int) int { return min(startAfter(b, from), len(b)) }
