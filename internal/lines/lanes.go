package lines

import "bytes"

// hits are the lines of a block that match: a byte of each, in order, or only their number.
type hits struct {
	only  bool // their number is all that is wanted
	n     int64
	at    []uint32
	lines int64 // of the block, matching or not; 0: not counted
}

func (h *hits) add(at int) {
	h.n++
	if !h.only {
		h.at = append(h.at, uint32(at)) // a block is far smaller
	}
}

// lanes is how many parts of a block are walked over at once: each step waits some five cycles for the table, so that
// one walk alone leaves most of the processor idle.
const lanes = 4

// walk finds the lines of b[from:] that match; b ends with a line end. asked says of a line, with its line end, whether regexp takes it.
// It returns false where the automaton was given up on the way, or the context has ended: what is in h then is not all.
func (w *walker) walk(b []byte, from int, h *hits, asked func(line []byte) (bool, error)) (bool, error) {
	x := walk{walker: w, b: b, asked: asked}
	x.lane[0] = lane{from: from, end: len(b), h: *h}
	for i := range x.q {
		x.q[i] = w.start
	}
	skipped := w.skipped
	ok, err := x.alone(0, probe)
	if walked := x.lane[0].from - from; ok && err == nil && w.skipped-skipped <= walked/4*3 {
		ok, err = x.cut(h.only)
	}
	for i := range x.lane {
		if ok && err == nil {
			ok, err = x.alone(i, len(b))
		}
	}
	*h = x.lane[0].h
	for i := 1; i < lanes; i++ {
		h.n += x.lane[i].h.n
		h.at = append(h.at, x.lane[i].h.at...)
	}
	return ok, err
}

// probe is how many lines of a block show whether lines match so early that going from one to the next is faster than lanes.
const probe = 16

// walk is one walk over a block.
type walk struct {
	*walker
	b     []byte
	asked func([]byte) (bool, error)
	lane  [lanes]lane
	q     [lanes]uint16 // the state of each lane; whoever empties the table numbers all of them anew
}

// lane is a part of the block, of whole lines.
type lane struct {
	from int // where it goes on
	end  int
	h    hits
}

// cut makes lanes of what is left of the first one, and walks them as far as the shortest goes.
func (x *walk) cut(only bool) (bool, error) {
	from := x.lane[0].from
	part, n := (len(x.b)-from)/lanes, len(x.b)
	for i := range x.lane {
		end := len(x.b)
		if i < lanes-1 {
			end = min(from+part, end)
			if end > 0 && x.b[end-1] != '\n' {
				end = lineEnd(x.b, end)
			}
		}
		h := hits{only: only}
		if i == 0 {
			h = x.lane[0].h // its hits stand before all others
		}
		x.lane[i], x.q[i] = lane{from: from, end: end, h: h}, x.start
		n = min(n, end-from)
		from = end
	}
	if n < 16 {
		return true, nil
	}
	return x.together(n)
}

// together walks the first n bytes of all lanes.
func (x *walk) together(n int) (bool, error) {
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
			if ok, err := x.events(&q, i); !ok || err != nil {
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

// events takes the step over byte i of each lane where some state is not yet made or a line has ended.
func (x *walk) events(q *[lanes]uint16, i int) (bool, error) {
	var to [lanes]uint16
	for k := 0; k < lanes; k++ {
		b := x.b[x.lane[k].from+i]
		to[k] = x.trans[q[k]+uint16(x.class[b])]
		if to[k] != unknown {
			continue
		}
		var ok bool
		if to[k], ok = x.step(q[k], b); !ok {
			if !x.anew(i*lanes, q[:]) {
				return false, nil
			}
			k = -1 // all states have new numbers
		}
	}
	if err := x.look(); err != nil {
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

// lookAt is how many instructions are looked at between two looks at the context: some milliseconds.
const lookAt = 1 << 20

// look looks at the context every so often.
func (w *walker) look() error {
	if w.work < lookAt {
		return nil
	}
	w.work = 0
	return w.ctx.Err()
}

// lineEnded takes the end of a line in lane k, at byte at.
func (x *walk) lineEnded(k int, row uint16, at int) error {
	if row == ask<<x.shift {
		start := lastNewline(x.b[:at]) + 1
		ok, err := x.asked(x.b[start : at+1])
		if !ok || err != nil {
			return err
		}
	}
	x.lane[k].h.add(at)
	return nil
}

// alone walks on in one lane, over as many lines at most, and goes to the end of a line as soon as it is known to match.
func (x *walk) alone(k, most int) (bool, error) {
	l := &x.lane[k]
	for n := 0; n < most && l.from < l.end; n++ {
		q, at, ok := x.line(x.b[:l.end], l.from, x.q[:], k)
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
		if err := x.look(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// line walks from one place, in state states[k], to the end of the line, where it returns hit, ask or the start state and the place of
// the line end. The other states wait, and are kept where the table is emptied. It returns false where the automaton was given up, or
// the context has ended.
func (w *walker) line(b []byte, from int, states []uint16, k int) (row uint16, at int, ok bool) {
	t, class, ended, q := w.trans, &w.class, w.ended, states[k]
	for i := from; i < len(b); i++ {
		c := b[i]
		a := t[q+uint16(class[c])]
		if a >= ended {
			q = a
			if c == '\n' {
				return a, i, true
			}
			continue
		}
		if a == unknown {
			for {
				if a, ok = w.step(q, c); ok {
					break
				}
				states[k] = q
				if !w.anew(i-from, states) {
					return 0, 0, false
				}
				q = states[k]
			}
			if w.look() != nil {
				return 0, 0, false
			}
			if a >= ended {
				q = a
				if c == '\n' {
					return a, i, true
				}
				continue
			}
		}
		if a < w.event { // the line has ended
			return a, i, true
		}
		if c != '\n' {
			n := bytes.IndexByte(b[i:], '\n')
			i += n
			w.skipped += n
		}
		return t[a+uint16(class['\n'])], i, true
	}
	return w.start, len(b), true
}

// lastNewline is bytes.LastIndexByte for a line end that is near.
func lastNewline(b []byte) int {
	i := len(b)
	for ; i >= 8; i -= 8 {
		w := uint64(b[i-8]) | uint64(b[i-7])<<8 | uint64(b[i-6])<<16 | uint64(b[i-5])<<24 |
			uint64(b[i-4])<<32 | uint64(b[i-3])<<40 | uint64(b[i-2])<<48 | uint64(b[i-1])<<56
		w ^= 0x0a0a0a0a0a0a0a0a
		if (w-0x0101010101010101)&^w&0x8080808080808080 != 0 {
			break
		}
	}
	return bytes.LastIndexByte(b[:i], '\n')
}
