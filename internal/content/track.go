package content

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxPointer is the longest pointer told, in bytes: a longer one is of no use in a call.
	maxPointer = 4 << 10
	// maxKey is how much of a key, as written, is kept for pointers: 10,000 open objects then hold at most 10 MB.
	maxKey = 1 << 10
)

var tokenEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Tracker is a [Scanner] that knows where it is: the JSON Pointer of what it
// reads. The zero value is ready.
type Tracker struct {
	Scanner

	values int64
	frames []frame
	inKey  bool

	pointer []byte
	built   int // how many frames' tokens stand in pointer
}

// Key is a key of an object as it is written in JSON, without its quotes; of a long one its first 1 KiB.
type Key struct {
	raw  []byte
	clip bool // raw is not all of it
}

// Append appends the key as a token of a JSON Pointer: "/" and the key, unquoted and escaped.
func (k *Key) Append(dst []byte) []byte {
	dst = append(dst, '/')
	from := len(dst)
	dst = appendUnquoted(dst, k.raw)
	if bytes.IndexByte(dst[from:], '~') >= 0 || bytes.IndexByte(dst[from:], '/') >= 0 {
		dst = append(dst[:from], tokenEscapes.Replace(string(dst[from:]))...)
	}
	if len(dst) > maxPointer {
		return append(dst[:runeStart(dst, maxPointer)], "…"...)
	}
	if k.clip {
		dst = append(dst, "…"...)
	}
	return dst
}

// frame is one open container and where in it we are.
type frame struct {
	count  int64 // children begun
	key    Key   // of the child read last
	object bool
	end    int // length of the pointer up to and with this frame's token
}

// Values is how many top-level values are complete.
func (t *Tracker) Values() int64 { return t.values }

// Count is how many children of the container open at depth (from 0) have begun.
func (t *Tracker) Count(depth int) int64 { return t.frames[depth].count }

// IsObject says whether the container open at depth (from 0) is an object.
func (t *Tracker) IsObject(depth int) bool { return t.frames[depth].object }

// CopyKey copies the key read last in the object open at depth (from 0) to k, whose memory is used again.
func (t *Tracker) CopyKey(depth int, k *Key) {
	f := &t.frames[depth]
	k.raw, k.clip = append(k.raw[:0], f.key.raw...), f.key.clip
}

// Scan is [Scanner.Scan].
func (t *Tracker) Scan(p []byte) (int, Event) {
	n, e := t.Scanner.Scan(p)
	if t.inKey {
		t.addKey(p[:n])
	}
	t.take(e)
	return n, e
}

// Item is [Scanner.Item].
func (t *Tracker) Item(p []byte, it *Item) int {
	n := t.Scanner.Item(p, it)
	if n == 0 {
		return 0
	}
	depth, container := t.depth, it.Event == ObjectStart || it.Event == ArrayStart
	if container {
		depth--
	}
	t.built = min(t.built, depth-1)
	f := &t.frames[depth-1]
	if it.HasKey {
		f.key.raw, f.key.clip = append(f.key.raw[:0], p[it.KeyFrom:it.KeyTo]...), false
	}
	if container {
		t.take(it.Event)
	} else {
		f.count++
	}
	return n
}

// End is [Scanner.End].
func (t *Tracker) End() (Event, error) {
	e, err := t.Scanner.End()
	t.take(e)
	return e, err
}

func (t *Tracker) take(e Event) {
	switch e {
	case More:
	case KeyStart:
		f := &t.frames[t.depth-1]
		f.key.raw, f.key.clip = f.key.raw[:0], false
		t.inKey = true
	case KeyEnd:
		f := &t.frames[t.depth-1]
		if !f.key.clip {
			f.key.raw = f.key.raw[:len(f.key.raw)-1] // the closing quote
		}
		t.inKey = false
		t.built = min(t.built, t.depth-1)
	case ObjectStart, ArrayStart:
		t.child(t.depth - 1)
		if len(t.frames) < t.depth {
			t.frames = append(t.frames, frame{})
		}
		f := &t.frames[t.depth-1]
		f.count, f.object = 0, e == ObjectStart
		f.key.raw, f.key.clip = f.key.raw[:0], false
		t.built = min(t.built, t.depth-1)
	case StringStart, NumberStart, LiteralStart:
		t.child(t.depth)
	default: // the end of a value
		if t.depth == 0 {
			t.values++
		}
	}
}

// child counts a value that begins with depth containers around it.
func (t *Tracker) child(depth int) {
	if depth == 0 {
		return
	}
	f := &t.frames[depth-1]
	f.count++
	if !f.object {
		t.built = min(t.built, depth-1)
	}
}

func (t *Tracker) addKey(p []byte) {
	f := &t.frames[t.depth-1]
	if room := maxKey - len(f.key.raw); len(p) > room {
		p, f.key.clip = p[:room], true
	}
	f.key.raw = append(f.key.raw, p...)
}

// Pointer is the JSON Pointer of the container open at that depth (from 0: the
// top-level value, ""), or for [Scanner.Depth] of its child read last. A pointer over
// 4 KiB is clipped and ends with "…"; so does a key over 1 KiB in it. It is overwritten by the next call.
func (t *Tracker) Pointer(depth int) []byte {
	for ; t.built < depth; t.built++ {
		f := &t.frames[t.built]
		t.pointer = t.pointer[:t.end(t.built)]
		if len(t.pointer) < maxPointer {
			t.pointer = t.token(t.pointer, f)
		}
		f.end = len(t.pointer)
	}
	return t.pointer[:t.end(depth)]
}

// end is where the tokens of the outermost depth containers end.
func (t *Tracker) end(depth int) int {
	if depth == 0 {
		return 0
	}
	return t.frames[depth-1].end
}

func (t *Tracker) token(dst []byte, f *frame) []byte {
	if !f.object {
		return strconv.AppendInt(append(dst, '/'), max(f.count-1, 0), 10)
	}
	return f.key.Append(dst)
}

// appendUnquoted appends the text of a string as written, without its quotes. Escapes become what they stand for, a lone
// surrogate U+FFFD; an escape that is not complete (raw was clipped) is left out; invalid UTF-8 stays.
func appendUnquoted(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := 0
		for n < len(raw) && raw[n] != '\\' {
			n++
		}
		dst = append(dst, raw[:n]...)
		raw = raw[n:]
		if len(raw) < 2 {
			return dst
		}
		switch c := raw[1]; c {
		case 'u':
			r, size := unescape(raw)
			if size == 0 {
				return dst
			}
			dst = utf8.AppendRune(dst, r)
			raw = raw[size:]
			continue
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default:
			dst = append(dst, c)
		}
		raw = raw[2:]
	}
	return dst
}

// unescape takes \uXXXX, or two that are a surrogate pair; size 0 where it is not complete.
func unescape(raw []byte) (rune, int) {
	r, ok := hex4(raw)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := hex4(raw[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return r, 6
}

func hex4(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
	return rune(n), err == nil
}

// runeStart is the last index up to i at which no UTF-8 sequence is cut.
func runeStart(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	for back := 0; back < utf8.UTFMax && i-back > 0; back++ {
		if utf8.RuneStart(b[i-back]) {
			return i - back
		}
	}
	return i
}

// completeRunes is how much of b is left without a UTF-8 sequence that its end cuts.
func completeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				break
			}
			return i
		}
	}
	return len(b)
}

// recordPointer is the pointer of a value in an NDJSON record.
func recordPointer(record int64, pointer string) string {
	return "/" + strconv.FormatInt(record, 10) + pointer
}
