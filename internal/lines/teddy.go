package lines

import "bytes"

// seeker finds a place of a needle in the first line at or after from that holds one, its end, and the newlines before it: len(b) where
// there is none, and the newlines of all that was looked at. from is a line's start, and b ends with a line end. It is one goroutine's.
type seeker interface {
	find(b []byte, from int) (at, end, lines int)
}

// vectors makes seekers of needles; nil where none is for them.
func vectors(ns []needle) func() seeker {
	t := newTeddy(ns)
	switch {
	case t == nil:
		return nil
	case len(ns) == 1:
		one := newPair(ns[0])
		return func() seeker { mine := *one; return &mine }
	}
	return func() seeker { return t }
}

// teddy looks for several needles at once by three bytes of each, 32 places at a time. A byte's two halves are each looked up in a table
// that says in which buckets of needles such a half may stand; where all six agree on a bucket its needles are compared.
type teddy struct {
	nibbles nibbles
	buckets [8][]toothed
}

// nibbles are for each of three bytes the buckets by its low half, and by its high half; each table twice, as AVX2 takes them.
type nibbles [6][32]byte

// toothed is a needle and where in it the three bytes stand.
type toothed struct {
	needle
	at int
}

// newTeddy returns nil where the needles are not for it: one byte is found faster by itself. The needles hold no line end.
func newTeddy(ns []needle) *teddy {
	if !haveTeddy || len(ns) == 0 {
		return nil
	}
	t := &teddy{}
	for i, n := range ns {
		if len(n.text) < 2 {
			return nil
		}
		b := i % len(t.buckets)
		at := rarestThree(n.text)
		t.buckets[b] = append(t.buckets[b], toothed{n, at})
		for k := range 3 {
			if at+k == len(n.text) { // of two bytes: whatever follows
				t.any(k, 1<<b)
				continue
			}
			c := n.text[at+k]
			t.put(k, 1<<b, c)
			if n.fold && 'a' <= c && c <= 'z' {
				t.put(k, 1<<b, c&^0x20)
			}
		}
	}
	return t
}

// put lets byte k of a bucket be c.
func (t *teddy) put(k int, bucket, c byte) {
	for _, half := range []int{0, 16} {
		t.nibbles[2*k][half+int(c&0x0f)] |= bucket
		t.nibbles[2*k+1][half+int(c>>4)] |= bucket
	}
}

// any lets byte k of a bucket be anything.
func (t *teddy) any(k int, bucket byte) {
	for i := range t.nibbles[2*k] {
		t.nibbles[2*k][i] |= bucket
		t.nibbles[2*k+1][i] |= bucket
	}
}

// rarestThree is where the three bytes stand that are rarest together.
func rarestThree(text string) (at int) {
	least := 1 << 20
	for i := 0; i == 0 || i+3 <= len(text); i++ {
		n := 0
		for k := i; k < min(i+3, len(text)); k++ {
			n += common(text[k])
		}
		if n < least {
			at, least = i, n
		}
	}
	return at
}

// find is [seeker.find].
func (t *teddy) find(b []byte, from int) (at, end, lines int) {
	for i := from; ; i++ {
		next, passed := t.next(b, i)
		if i, lines = next, lines+passed; i == len(b) {
			return i, i, lines
		}
		buckets := t.nibbles.at(b[i:])
		for k := range t.buckets {
			if buckets>>k&1 == 0 {
				continue
			}
			for _, n := range t.buckets[k] {
				at, end = i-n.at, i-n.at+len(n.text)
				if at >= from && end <= len(b) && n.is(b[at:end]) {
					return at, end, lines
				}
			}
		}
		if b[i] == '\n' {
			lines++
		}
	}
}

// next is the first place at or after from at which three bytes of a bucket may stand, else len(b), and the newlines from there to it.
func (t *teddy) next(b []byte, from int) (at, lines int) {
	if n := len(b) - 2 - from; n >= 32 {
		at, lines = teddyNext(&b[from], n, &t.nibbles)
		if at >= 0 {
			return from + at, lines
		}
		from += n &^ 31
	}
	at = t.nibbles.next(b, from)
	return at, lines + bytes.Count(b[from:at], newline)
}

// next is what teddyNext does, and for the rest of a text that is too short for it.
func (t *nibbles) next(b []byte, from int) int {
	for i := from; i+2 < len(b); i++ {
		if t.at(b[i:]) != 0 {
			return i
		}
	}
	return len(b)
}

// at is the buckets of which three bytes may stand at the start of b.
func (t *nibbles) at(b []byte) byte {
	return t[0][b[0]&0x0f] & t[1][b[0]>>4] & t[2][b[1]&0x0f] & t[3][b[1]>>4] & t[4][b[2]&0x0f] & t[5][b[2]>>4]
}
