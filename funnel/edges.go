package funnel

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/internal/runes"
)

// A line of up to keptLine bytes is kept as it is; of a longer one the first and the last keptHalf bytes.
const (
	keptLine = 4 << 10
	keptHalf = keptLine / 2
)

// line is one line of an output, without its line end.
type line struct {
	left, right []byte // right is empty where left is all of it
	chars       int64  // of all of it
	many        bool   // it is a row of several lines, and shown as such
}

// edges counts an output and keeps its first and last lines: one pass, and
// memory bounded by 4 KiB a line. A chunk must end between two chars, which
// the output's buffer sees to; one that ends within a char counts it twice.
//
// Lines are counted as a reader counts them: a last line without newline
// counts. Chars are runes, each invalid byte one. "\r\n" ends a line like "\n".
type edges struct {
	lines, chars, bytes, longest int64

	headLines int
	head      []line
	tail      []line // a ring of the last lines
	next      int    // where in the ring the next one goes

	open  bool // a line has begun, which may be shown
	left  []byte
	right []byte // its bytes from keptHalf on, only the last of them
	size  int64  // its bytes so far
	runes int64  // its chars so far
}

func newEdges(head, tail int) *edges {
	return &edges{headLines: head, head: make([]line, 0, head), tail: make([]line, 0, tail)}
}

// Write never fails.
func (e *edges) Write(p []byte) (int, error) {
	n := len(p)
	e.bytes += int64(n)
	e.chars += int64(runes.Count(p))
	// A line that ends before the last cap(tail) complete lines of this chunk is pushed out by them: it
	// need not be copied. The line left open at the chunk's end always begins behind that place.
	behind := -1
	for i, end := 0, n; i <= cap(e.tail); i++ {
		if behind = bytes.LastIndexByte(p[:end], '\n'); behind < 0 {
			break
		}
		end = behind
	}
	for at := 0; at < n; {
		if !e.open && at <= behind && len(e.head) >= e.headLines {
			e.pass(p[at : behind+1])
			at = behind + 1
			continue
		}
		e.open = true
		i := bytes.IndexByte(p[at:], '\n')
		if i < 0 {
			e.add(p[at:])
			break
		}
		e.add(p[at : at+i])
		e.end()
		at += i + 1
	}
	return n, nil
}

// close ends a last line that has no newline.
func (e *edges) close() {
	if e.open {
		e.end()
	}
}

// passBytes is how much of a text [edges.pass] looks for newlines in at once.
const passBytes = 16 << 10

// pass counts whole lines that are not shown.
func (e *edges) pass(text []byte) {
	var ends [passBytes / 64]uint64
	from := 0
	for at := 0; at < len(text); at += passBytes {
		piece := text[at:min(at+passBytes, len(text))]
		runes.Newlines(piece, ends[:])
		for k, word := range ends[:(len(piece)+63)/64] {
			e.lines += int64(bits.OnesCount64(word))
			for ; word != 0; word &= word - 1 {
				end := at + 64*k + bits.TrailingZeros64(word)
				if int64(end-from) > e.longest { // a line has at most one char a byte
					e.longest = max(e.longest, int64(runes.Count(text[from:end])))
				}
				from = end + 1
			}
		}
	}
}

func (e *edges) add(part []byte) {
	e.size += int64(len(part))
	e.runes += int64(runes.Count(part))
	if room := keptLine - len(e.left); room > 0 && len(e.right) == 0 {
		taken := min(room, len(part))
		e.left = append(e.left, part[:taken]...)
		part = part[taken:]
	}
	if len(part) > keptHalf {
		e.right = append(e.right[:0], part[len(part)-keptHalf:]...)
		return
	}
	e.right = append(e.right, part...)
	if drop := len(e.right) - keptHalf; drop > keptLine {
		e.right = append(e.right[:0], e.right[drop:]...)
	}
}

func (e *edges) end() {
	e.lines++
	e.longest = max(e.longest, e.runes)
	l := e.line()
	if len(e.head) < e.headLines {
		e.head = append(e.head, l)
	}
	switch {
	case len(e.tail) < cap(e.tail):
		e.tail = append(e.tail, l)
	case cap(e.tail) > 0:
		e.tail[e.next] = l
		e.next = (e.next + 1) % cap(e.tail)
	}
	e.open, e.size, e.runes = false, 0, 0
	e.left, e.right = e.left[:0], e.right[:0]
}

// line copies the open line out of the working memory.
func (e *edges) line() line {
	if e.size <= keptLine {
		text := bytes.TrimSuffix(e.left, []byte{'\r'})
		return line{left: bytes.Clone(text), chars: e.runes - int64(len(e.left)-len(text))}
	}
	// What lies between keptHalf and the last keptHalf bytes goes; the right part may reach back into left.
	right := e.right
	if short := keptHalf - len(right); short > 0 {
		right = append(bytes.Clone(e.left[len(e.left)-short:]), right...)
	}
	right = right[len(right)-keptHalf:]
	trimmed := bytes.TrimSuffix(right, []byte{'\r'})
	left := e.left[:keptHalf]
	return line{left: bytes.Clone(left), right: bytes.Clone(trimmed), chars: e.runes - int64(len(right)-len(trimmed))}
}

// last gives the last lines in their order.
func (e *edges) last() []line {
	return append(append(make([]line, 0, len(e.tail)), e.tail[e.next:]...), e.tail[:e.next]...)
}

// fork is a copy that goes on by itself.
func (e *edges) fork() *edges {
	c := *e
	c.head, c.tail = slices.Clone(e.head), append(make([]line, 0, cap(e.tail)), e.tail...)
	c.left, c.right = bytes.Clone(e.left), bytes.Clone(e.right)
	return &c
}
