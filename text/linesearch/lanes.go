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
	for i := range x.q {
		x.q[i] = w.start
	}
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

// blockWalk is one run of the automaton over a block.
type blockWalk struct {
	*walker
	b       []byte
	matches func(line []byte) (bool, error)
	lane    [lanes]lane
	q       [lanes]uint16 // the state of each lane; resetCache renumbers all of them
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
		a0 := t[q0+uint16(class[b0[i]])]
		a1 := t[q1+uint16(class[b1[i]])]
		a2 := t[q2+uint16(class[b2[i]])]
		a3 := t[q3+uint16(class[b3[i]])]
		if a0 < event || a1 < event || a2 < event || a3 < event {
			q := [lanes]uint16{q0, q1, q2, q3}
			if ok, err := x.handleEvents(&q, i); !ok || err != nil {
				return ok, err
			}
			q0, q1, q2, q3 = q[0], q[1], q[2], q[3]
			continue
		}
		q0, q1, q2, q3 = a0, a1, a2, a3
	}
	x.q = [lanes]uint16{q0, q1, q2, q3}
	for i := range x.lane {
		x.lane[i].from += n
	}
	x.seen += n * lanes
	return true, nil
}

// handleEvents steps each lane over its byte i if at least one lane needs a new state or has reached the end of a line.
// It returns false if the automaton was abandoned.
func (x *blockWalk) handleEvents(q *[lanes]uint16, i int) (bool, error) {
	var to [lanes]uint16
	for k := 0; k < lanes; k++ {
		b := x.b[x.lane[k].from+i]
		to[k] = x.trans[q[k]+uint16(x.class[b])]
		if to[k] != rowUnknown {
			continue
		}
		var ok bool
		if to[k], ok = x.addTransition(q[k], b); !ok {
			if !x.resetCache(i*lanes, q[:]) {
				return false, nil
			}
			k = -1 // all states have new numbers
		}
	}
	if err := x.checkContext(); err != nil {
		return true, err
	}
	for k := range to {
		q[k] = to[k]
		if to[k] < x.event {
			q[k] = x.start
			if err := x.lineEnded(k, to[k], x.lane[k].from+i); err != nil {
				return true, err
			}
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

// lineEnded records the line of lane k that ends at position at, if the line matches.
func (x *blockWalk) lineEnded(k int, row uint16, at int) error {
	if row == rowAskRegexp<<x.shift {
		start := lastNewline(x.b[:at]) + 1
		ok, err := x.matches(x.b[start : at+1])
		if !ok || err != nil {
			return err
		}
	}
	x.lane[k].add(at)
	return nil
}

// walkLane walks one lane over at most the given number of lines. Once a line is known to match, walkLane skips to
// its end.
func (x *blockWalk) walkLane(k, most int) (bool, error) {
	l := &x.lane[k]
	for n := 0; n < most && l.from < l.end; n++ {
		q, at, ok := x.walkLine(x.b[:l.end], l.from, x.q[:], k)
		if !ok {
			return false, nil
		}
		x.seen += at - l.from
		x.q[k], l.from = x.start, at+1
		if q < x.event {
			if err := x.lineEnded(k, q, at); err != nil {
				return true, err
			}
		}
		if err := x.checkContext(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// walkLine walks from position from in state states[k] to the end of the line. It returns rowHit, rowAskRegexp or the
// start state, and the position of the newline. If the table is cleared, walkLine keeps all of states and updates their
// numbers. It returns false if the automaton was abandoned or the context has ended.
func (w *walker) walkLine(b []byte, from int, states []uint16, k int) (row uint16, at int, ok bool) {
	t, class, ended, q := w.trans, &w.class, w.ended, states[k]
	for i := from; i < len(b); i++ {
		c := b[i]
		a := t[q+uint16(class[c])]
		if a == rowUnknown {
			for a, ok = w.addTransition(q, c); !ok; a, ok = w.addTransition(q, c) {
				states[k] = q
				if !w.resetCache(i-from, states) {
					return 0, 0, false
				}
				q = states[k]
			}
			if w.checkContext() != nil {
				return 0, 0, false
			}
		}
		switch {
		case a >= ended:
			if q = a; c == '\n' {
				return a, i, true
			}
			continue
		case a < w.event: // the line has ended
			return a, i, true
		case c != '\n':
			n := bytes.IndexByte(b[i:], '\n')
			i += n
			w.skipped += n
		}
		return t[a+uint16(class['\n'])], i, true
	}
	return w.start, len(b), true
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
