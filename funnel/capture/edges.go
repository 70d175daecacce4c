package capture

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
)

// A line of up to keptLine bytes is held whole; of a longer one the first and the last keptHalf bytes.
const (
	keptLine = 4 << 10
	keptHalf = keptLine / 2
)

// edges counts an output and holds its first and last lines, in at most 4 KiB a line. Each chunk must end between two
// chars, because a char that is cut would be counted twice. "\r\n" ends a line like "\n".
type edges struct {
	lines, chars, bytes, longest int64

	headLines int
	head      []text.Line
	tail      []text.Line // a ring of the last lines
	oldest    int         // index in the ring of the oldest line, which the next one replaces

	// The current line, if it may be shown:
	open  bool   // it has begun
	left  []byte // its first bytes
	right []byte // its last bytes after left
	size  int64  // bytes so far
	runes int64  // chars so far
}

func newEdges(head, tail int) *edges {
	return &edges{headLines: head, head: make([]text.Line, 0, head), tail: make([]text.Line, 0, tail)}
}

// Write never fails.
func (e *edges) Write(p []byte) (int, error) {
	n := len(p)
	e.bytes += int64(n)
	e.chars += int64(runes.Count(p))
	// The last cap(tail) complete lines of this chunk replace every earlier line in the tail, so earlier lines need not
	// be copied. They end at behind; the line that the end of the chunk leaves open begins after it.
	behind := -1
	for i, end := 0, n; i <= cap(e.tail); i++ {
		if behind = bytes.LastIndexByte(p[:end], '\n'); behind < 0 {
			break
		}
		end = behind
	}
	for at := 0; at < n; {
		if !e.open && at <= behind && len(e.head) >= e.headLines {
			e.countHidden(p[at : behind+1])
			at = behind + 1
			continue
		}
		e.open = true
		i := bytes.IndexByte(p[at:], '\n')
		if i < 0 {
			e.extendLine(p[at:])
			break
		}
		e.extendLine(p[at : at+i])
		e.endLine()
		at += i + 1
	}
	return n, nil
}

// close ends a last line that has no newline.
func (e *edges) close() {
	if e.open {
		e.endLine()
	}
}

// newlineBlock is how many bytes [edges.countHidden] searches for newlines at once.
const newlineBlock = 16 << 10

// countHidden counts whole lines that are not shown.
func (e *edges) countHidden(lines []byte) {
	var ends [newlineBlock / 64]uint64
	from := 0
	for at := 0; at < len(lines); at += newlineBlock {
		part := lines[at:min(at+newlineBlock, len(lines))]
		runes.Newlines(part, ends[:])
		for k, word := range ends[:(len(part)+63)/64] {
			e.lines += int64(bits.OnesCount64(word))
			last := word
			if !zerosBetween(word, e.longest) { // then only the first of these lines, which may begin earlier, may be longer
				word &= -word
			}
			for ; word != 0; word &= word - 1 {
				end := at + 64*k + bits.TrailingZeros64(word)
				if int64(end-from) > e.longest { // a line has at most one char a byte
					e.longest = max(e.longest, int64(runes.Count(lines[from:end])))
				}
				from = end + 1
			}
			if last != 0 {
				from = at + 64*k + bits.Len64(last)
			}
		}
	}
}

// zerosBetween reports whether more than n zeros follow each other between two ones of a word.
func zerosBetween(word uint64, n int64) bool {
	if n >= 62 || word&(word-1) == 0 {
		return false
	}
	zeros := ^word & (1<<(bits.Len64(word)-1) - 1) &^ (word&-word - 1)
	for have, want := 1, int(n)+1; have < want && zeros != 0; { // each bit stands for a run of have zeros from it on
		step := min(have, want-have)
		zeros &= zeros >> step
		have += step
	}
	return zeros != 0
}

// extendLine adds to the open line.
func (e *edges) extendLine(part []byte) {
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

// endLine counts the open line and moves it to the head and the tail.
func (e *edges) endLine() {
	e.lines++
	e.longest = max(e.longest, e.runes)
	l := e.currentLine()
	if len(e.head) < e.headLines {
		e.head = append(e.head, l)
	}
	switch {
	case len(e.tail) < cap(e.tail):
		e.tail = append(e.tail, l)
	case cap(e.tail) > 0:
		e.tail[e.oldest] = l
		e.oldest = (e.oldest + 1) % cap(e.tail)
	}
	e.open, e.size, e.runes = false, 0, 0
	e.left, e.right = e.left[:0], e.right[:0]
}

// currentLine returns a copy of the open line.
func (e *edges) currentLine() text.Line {
	if e.size <= keptLine {
		whole := bytes.TrimSuffix(e.left, []byte{'\r'})
		return text.Line{Left: bytes.Clone(whole), Chars: e.runes - int64(len(e.left)-len(whole))}
	}
	// The bytes between the first and the last keptHalf are dropped; the right part may begin in e.left.
	right := e.right
	if short := keptHalf - len(right); short > 0 {
		right = append(bytes.Clone(e.left[len(e.left)-short:]), right...)
	}
	right = right[len(right)-keptHalf:]
	trimmed := bytes.TrimSuffix(right, []byte{'\r'})
	return text.Line{
		Left: bytes.Clone(e.left[:keptHalf]), Right: bytes.Clone(trimmed),
		Chars: e.runes - int64(len(right)-len(trimmed)),
	}
}

// lastLines returns the tail in its order.
func (e *edges) lastLines() []text.Line {
	return append(append(make([]text.Line, 0, len(e.tail)), e.tail[e.oldest:]...), e.tail[:e.oldest]...)
}

// clone returns a copy that shares nothing with e.
func (e *edges) clone() *edges {
	c := *e
	c.head, c.tail = slices.Clone(e.head), append(make([]text.Line, 0, cap(e.tail)), e.tail...)
	c.left, c.right = bytes.Clone(e.left), bytes.Clone(e.right)
	return &c
}
