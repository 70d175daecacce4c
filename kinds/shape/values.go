package shape

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

const (
	fewValues = 12 // maximum number of distinct values listed
	fewSlots  = 32 // slots of the hash of listed values, a power of 2
	fewBytes  = 40 // maximum bytes of one listed value

	exampleBytes = 20 // maximum bytes of a string that is an example
	dateBytes    = 35 // maximum bytes of a date with time, fraction and zone
)

// few counts values as long as there are at most fewValues distinct ones, all short and valid UTF-8.
type few struct {
	values []value
	slots  [fewSlots]uint8 // likely index of a value, by its hash: linear search would slow "keep" in docs/SPEED.md
	many   bool
}

type value struct {
	text  string
	n     int64
	first int64 // number of the first record with this value; −1 outside of records
}

func (f *few) add(raw []byte, n, first int64) {
	if f.many {
		return
	}
	slot := &f.slots[slotOf(raw)]
	if i := int(*slot); i < len(f.values) && f.values[i].text == string(raw) {
		f.values[i].n += n
		return
	}
	for i := range f.values {
		if f.values[i].text == string(raw) {
			f.values[i].n += n
			*slot = uint8(i)
			return
		}
	}
	if len(f.values) == fewValues || len(raw) > fewBytes || !utf8.Valid(raw) {
		f.values, f.many = nil, true
		return
	}
	*slot = uint8(len(f.values))
	f.values = append(f.values, value{string(raw), n, first})
}

// slotOf hashes a value by its length and three of its bytes. Numbers in a row and names that differ only in their last
// digit get slots of their own, because the sum of the factors of the last bytes is odd.
func slotOf(raw []byte) uint {
	n := len(raw)
	if n == 0 {
		return 0
	}
	return (uint(n) + 4*uint(raw[0]) + 2*uint(raw[n/2]) + uint(raw[n-1])) % fewSlots
}

func (f *few) merge(g *few) {
	if g.many {
		f.values, f.many = nil, true
		return
	}
	for _, v := range g.values {
		f.add([]byte(v.text), v.n, v.first)
	}
}

// texts holds the statistics of strings.
type texts struct {
	n       int64
	few     few
	example string // the first string, as written, up to exampleBytes
	other   bool   // at least one string is not a date
	from    []byte
	to      []byte // earliest (from) and latest (to) date, as written
	longest int64  // length of the longest string in bytes, as written

	distinct int64 // number of distinct values; 0 if not counted
}

func (t *texts) add(raw []byte, size, record int64) {
	if t.n++; t.n == 1 {
		t.example = string(raw[:min(len(raw), exampleBytes+1)])
	}
	t.longest = max(t.longest, size)
	t.few.add(raw, 1, record)
	if t.other {
		return
	}
	if !isDate(raw) {
		t.other, t.from, t.to = true, nil, nil
		return
	}
	if t.from == nil || bytes.Compare(raw, t.from) < 0 {
		t.from = append(t.from[:0], raw...)
	}
	if bytes.Compare(raw, t.to) > 0 {
		t.to = append(t.to[:0], raw...)
	}
}

func (t *texts) merge(u *texts) {
	t.longest = max(t.longest, u.longest)
	t.few.merge(&u.few)
	switch {
	case t.n == 0:
		t.example, t.other, t.from, t.to = u.example, u.other, u.from, u.to
	case u.other || t.other:
		t.other, t.from, t.to = true, nil, nil
	default:
		if bytes.Compare(u.from, t.from) < 0 {
			t.from = u.from
		}
		if bytes.Compare(u.to, t.to) > 0 {
			t.to = u.to
		}
	}
	t.n += u.n
}

// isDate reports whether b is a date such as 2026-11-20, or a date with a time such as 2026-11-20T14:30:22 or
// 2026-11-20 14:30, with any fraction and zone. Such strings sort by time, ignoring zones.
func isDate(b []byte) bool {
	if len(b) < 10 || len(b) > dateBytes || b[4] != '-' || b[7] != '-' {
		return false
	}
	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		if b[i] < '0' || b[i] > '9' {
			return false
		}
	}
	if b[5] > '1' || b[8] > '3' {
		return false
	}
	return len(b) == 10 || len(b) >= 16 && (b[10] == 'T' || b[10] == ' ') && b[13] == ':'
}

// numbers holds the statistics of numbers. The minimum and maximum keep their digits as written.
type numbers struct {
	n        int64
	few      few
	lo, hi   float64
	low, top []byte
	sum      float64
	example  string // the first number, as written
}

func (t *numbers) add(raw []byte, record int64) {
	if len(raw) > 64 { // the value of a number with thousands of digits is not needed
		t.n++
		t.few.many, t.few.values = true, nil
		return
	}
	t.put(raw, parseNumber(raw), record)
}

func (t *numbers) put(raw []byte, v float64, record int64) {
	if t.n++; t.n == 1 {
		t.example = string(raw)
	}
	t.sum += v
	t.few.add(raw, 1, record)
	if t.low == nil || v < t.lo || v == t.lo && before(raw, t.low) {
		t.lo, t.low = v, append(t.low[:0], raw...)
	}
	if t.top == nil || v > t.hi || v == t.hi && before(t.top, raw) {
		t.hi, t.top = v, append(t.top[:0], raw...)
	}
}

func (t *numbers) merge(u *numbers) {
	if t.n == 0 {
		t.example = u.example
	}
	t.n += u.n
	t.sum += u.sum
	t.few.merge(&u.few)
	if u.low != nil && (t.low == nil || u.lo < t.lo || u.lo == t.lo && before(u.low, t.low)) {
		t.lo, t.low = u.lo, u.low
	}
	if u.top != nil && (t.top == nil || u.hi > t.hi || u.hi == t.hi && before(t.top, u.top)) {
		t.hi, t.top = u.hi, u.top
	}
}

// before compares two integers that are equal as float64, which happens beyond 2^53.
func before(a, b []byte) bool {
	if bytes.Equal(a, b) || !isInteger(a) || !isInteger(b) {
		return false
	}
	if a[0] == '-' && b[0] == '-' {
		a, b = b[1:], a[1:]
	} else if a[0] == '-' || b[0] == '-' {
		return false // 0 and -0
	}
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return bytes.Compare(a, b) < 0
}

func isInteger(b []byte) bool {
	return len(b) > 0 && len(bytes.Trim(bytes.TrimPrefix(b, []byte{'-'}), "0123456789")) == 0
}

// parseNumber parses a JSON number. It returns an infinity for a number that is too large.
func parseNumber(raw []byte) float64 {
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0
	}
	return v
}
