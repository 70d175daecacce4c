package content

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxPointer is the maximum length of a returned pointer, in bytes; a longer one is of no use as an argument.
	maxPointer = 4 << 10
	// maxKey is how many bytes of a key, as written, are stored for pointers: at most 10 MB for 10,000 open objects.
	maxKey = 1 << 10
)

var tokenEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// EscapeToken returns a key as a token of a JSON Pointer, without the slash before it.
func EscapeToken(key string) string { return tokenEscapes.Replace(key) }

// Tracker is a [Scanner] that also tracks the JSON Pointer of the current value. The zero value is ready to use.
type Tracker struct {
	Scanner

	values     int64
	containers []container
	inKey      bool

	pointer []byte
	built   int // number of containers whose tokens are in pointer
}

// Key is a key of an object as written in JSON, without quotes, truncated to 1 KiB.
type Key struct {
	raw  []byte
	clip bool // raw is truncated
}

// Append appends the key to dst as a token of a JSON Pointer: "/" and the key, with JSON escapes decoded and "~" and
// "/" escaped. A truncated key ends with "…".
func (k *Key) Append(dst []byte) []byte {
	dst = append(dst, '/')
	from := len(dst)
	dst = AppendUnquoted(dst, k.raw)
	if bytes.IndexByte(dst[from:], '~') >= 0 || bytes.IndexByte(dst[from:], '/') >= 0 {
		dst = append(dst[:from], EscapeToken(string(dst[from:]))...)
	}
	if len(dst) > maxPointer {
		return append(dst[:runeStart(dst, maxPointer)], "…"...)
	}
	if k.clip {
		dst = append(dst, "…"...)
	}
	return dst
}

// Raw returns the key as written in JSON, without quotes, truncated to 1 KiB. The caller must not change it.
func (k *Key) Raw() []byte { return k.raw }

// container is one open container and the current position in it.
type container struct {
	count  int64 // number of children begun
	key    Key   // key of the child read last
	object bool
	end    int // length of the pointer including this container's token
}

// Values returns the number of complete top-level values.
func (t *Tracker) Values() int64 { return t.values }

// IsObject reports whether the open container at the given depth is an object; depth 0 is the outermost.
func (t *Tracker) IsObject(depth int) bool { return t.containers[depth].object }

// CopyKey copies to k the key read last in the open object at the given depth and reuses the memory of k. Depth 0 is
// the outermost container.
func (t *Tracker) CopyKey(depth int, k *Key) {
	f := &t.containers[depth]
	k.raw, k.clip = append(k.raw[:0], f.key.raw...), f.key.clip
}

// Scan is [Scanner.Scan].
func (t *Tracker) Scan(p []byte) (int, Event) {
	n, e := t.Scanner.Scan(p)
	if t.inKey {
		t.addKey(p[:n])
	}
	t.update(e)
	return n, e
}

// Item is [Scanner.Item].
func (t *Tracker) Item(p []byte, it *Item) int {
	n := t.Scanner.Item(p, it)
	if n == 0 {
		return 0
	}
	depth := t.Around(it.Event)
	t.built = min(t.built, depth-1)
	f := &t.containers[depth-1]
	if it.HasKey {
		f.key.raw, f.key.clip = append(f.key.raw[:0], p[it.KeyFrom:it.KeyTo]...), false
	}
	if it.Event.Opens() {
		t.update(it.Event)
	} else {
		f.count++
	}
	return n
}

// End is [Scanner.End].
func (t *Tracker) End() (Event, error) {
	e, err := t.Scanner.End()
	t.update(e)
	return e, err
}

// update updates the open containers and their keys after an event.
func (t *Tracker) update(e Event) {
	switch e {
	case More:
	case KeyStart:
		f := &t.containers[t.depth-1]
		f.key.raw, f.key.clip = f.key.raw[:0], false
		t.inKey = true
	case KeyEnd:
		f := &t.containers[t.depth-1]
		if !f.key.clip {
			f.key.raw = f.key.raw[:len(f.key.raw)-1] // the closing quote
		}
		t.inKey = false
		t.built = min(t.built, t.depth-1)
	case ObjectStart, ArrayStart:
		t.addChild(t.depth - 1)
		if len(t.containers) < t.depth {
			t.containers = append(t.containers, container{})
		}
		f := &t.containers[t.depth-1]
		f.count, f.object = 0, e == ObjectStart
		f.key.raw, f.key.clip = f.key.raw[:0], false
		t.built = min(t.built, t.depth-1)
	case StringStart, NumberStart, LiteralStart:
		t.addChild(t.depth)
	default: // the end of a value
		if t.depth == 0 {
			t.values++
		}
	}
}

// addChild counts a new value in the innermost of the given number of open containers.
func (t *Tracker) addChild(depth int) {
	if depth == 0 {
		return
	}
	f := &t.containers[depth-1]
	f.count++
	if !f.object {
		t.built = min(t.built, depth-1)
	}
}

func (t *Tracker) addKey(p []byte) {
	f := &t.containers[t.depth-1]
	if room := maxKey - len(f.key.raw); len(p) > room {
		p, f.key.clip = p[:room], true
	}
	f.key.raw = append(f.key.raw, p...)
}

// Pointer returns the JSON Pointer of the open container at the given depth; depth 0 is the top-level value, whose
// pointer is "". For depth [Scanner.Depth] it returns the pointer of the last child begun in the innermost container.
// A pointer over 4 KiB is truncated and ends with "…"; so does each key over 1 KiB in it. The next call overwrites
// the result.
func (t *Tracker) Pointer(depth int) []byte {
	for ; t.built < depth; t.built++ {
		f := &t.containers[t.built]
		t.pointer = t.pointer[:t.end(t.built)]
		if len(t.pointer) < maxPointer {
			t.pointer = t.token(t.pointer, f)
		}
		f.end = len(t.pointer)
	}
	return t.pointer[:t.end(depth)]
}

// end returns the length of the pointer's tokens for the given number of outermost containers.
func (t *Tracker) end(depth int) int {
	if depth == 0 {
		return 0
	}
	return t.containers[depth-1].end
}

func (t *Tracker) token(dst []byte, f *container) []byte {
	if !f.object {
		return strconv.AppendInt(append(dst, '/'), max(f.count-1, 0), 10)
	}
	return f.key.Append(dst)
}

// AppendUnquoted decodes the escapes of raw, a JSON string without its quotes, and appends the text to dst. A lone
// surrogate becomes U+FFFD, an incomplete escape (raw was truncated) is dropped, and invalid UTF-8 is kept.
func AppendUnquoted(dst, raw []byte) []byte {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:n]...)
		raw = raw[n:]
		if len(raw) < 2 {
			return dst
		}
		if raw[1] == 'u' {
			r, size := unescape(raw)
			if size == 0 {
				return dst
			}
			dst = utf8.AppendRune(dst, r)
			raw = raw[size:]
			continue
		}
		c := raw[1]
		if k := strings.IndexByte("bfnrt", c); k >= 0 {
			c = "\b\f\n\r\t"[k]
		}
		dst = append(dst, c)
		raw = raw[2:]
	}
}

// unescape decodes the escape \uXXXX at the start of raw, or two such escapes that form a surrogate pair. The second
// result is their length; 0 if the escape is incomplete.
func unescape(raw []byte) (rune, int) {
	r, ok := hex4(raw)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		low, _ := hex4(raw[6:])
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, 12
		}
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
