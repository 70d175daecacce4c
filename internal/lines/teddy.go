package lines

// teddy looks for several needles at once by three bytes of each, 32 places at a time. A byte's two halves are each looked up in a table
// that says in which buckets of needles such a half may stand; where all six agree on a bucket its needles are compared.
type teddy struct {
	nibbles nibbles
	buckets [8][]toothed
	one     *pair // instead, where there is but one needle
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
	if len(ns) == 1 && !ns[0].fold && len(ns[0].text) > 1 {
		t.one = newPair(ns[0])
	}
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

// find returns a place of a needle in the first line at or after from that holds one, and its end; len(b) where there is none.
// from is a line's start, and b ends with a line end.
func (t *teddy) find(b []byte, from int) (at, end int) {
	if t.one != nil {
		return t.one.find(b, from)
	}
	for i := t.next(b, from); i < len(b); i = t.next(b, i+1) {
		buckets := t.nibbles.at(b[i:])
		for k := range t.buckets {
			if buckets>>k&1 == 0 {
				continue
			}
			for _, n := range t.buckets[k] {
				at, end = i-n.at, i-n.at+len(n.text)
				if at < from || end > len(b) {
					continue
				}
				if n.fold && equalFold(b[at:end], n.text) || !n.fold && string(b[at:end]) == n.text {
					return at, end
				}
			}
		}
	}
	return len(b), len(b)
}

// next is the first place at or after from at which three bytes of a bucket may stand, else len(b).
func (t *teddy) next(b []byte, from int) int {
	if n := len(b) - 2 - from; n >= 32 {
		if i := teddyNext(&b[from], n, &t.nibbles); i >= 0 {
			return from + i
		}
		from += n &^ 31
	}
	return t.nibbles.next(b, from)
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

// pair looks for one needle by its two rarest bytes.
type pair struct {
	text          string
	first, second int // places of the bytes in it
}

func newPair(n needle) *pair {
	other := -1
	for i := range len(n.text) {
		if i != n.rare && (other < 0 || common(n.text[i]) < common(n.text[other])) {
			other = i
		}
	}
	return &pair{text: n.text, first: min(n.rare, other), second: max(n.rare, other)}
}

func (p *pair) find(b []byte, from int) (at, end int) {
	for ; ; from++ {
		if from = p.next(b, from); from == len(b) {
			return from, from
		}
		if end = from + len(p.text); string(b[from:end]) == p.text {
			return from, end
		}
	}
}

// next is the first place at or after from at which the needle may start: len(b) where there is none.
func (p *pair) next(b []byte, from int) int {
	n := len(b) - len(p.text) + 1 - from
	if n >= 64 {
		if i := pairNext(&b[from+p.first], n, p.second-p.first, p.text[p.first], p.text[p.second]); i >= 0 {
			return from + i
		}
		from += n &^ 63
	}
	return p.plain(b, from)
}

// plain is what pairNext does, and for the rest of a text that is too short for it.
func (p *pair) plain(b []byte, from int) int {
	for i := from; i+len(p.text) <= len(b); i++ {
		if b[i+p.first] == p.text[p.first] && b[i+p.second] == p.text[p.second] {
			return i
		}
	}
	return len(b)
}
