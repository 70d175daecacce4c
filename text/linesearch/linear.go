package linesearch

import (
	"bytes"
	"context"
	"io"
	"regexp/syntax"
	"unicode/utf8"
)

// linear matches a pattern that is a row of single characters, such as [a-q][^u-z]{13}m: one bit for each position, all
// of them advanced at once for each byte (Shift-And, Baeza-Yates and Gonnet 1992). An automaton may need a state for
// each set of positions, up to 2¹³ here; this takes the same time for every text.
type linear struct {
	mask [256][linearWords]uint64 // by byte: the positions that accept it
	n    int                      // positions
}

// linearWords bounds the number of positions: 64 for each.
const linearWords = 4

// newLinear returns nil if the pattern is anything else than a row of characters.
func newLinear(tree *syntax.Regexp) *linear {
	l := &linear{}
	if !l.add(tree) || l.n == 0 {
		return nil
	}
	return l
}

// add adds the positions of a part of the pattern; false if it is no row of characters, or too long.
func (l *linear) add(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpCapture:
		return l.add(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !l.add(sub) {
				return false
			}
		}
		return true
	case syntax.OpRepeat:
		if re.Min != re.Max || re.Min > 64*linearWords {
			return false
		}
		for range re.Min {
			if !l.add(re.Sub[0]) {
				return false
			}
		}
		return true
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if !l.addClass([]rune{r, r}, re.Flags&syntax.FoldCase != 0) {
				return false
			}
		}
		return true
	case syntax.OpCharClass:
		return l.addClass(re.Rune, false)
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		return l.addClass([]rune{0, utf8.MaxRune}, false)
	}
	return false
}

// addClass adds a position that accepts the ASCII characters of these ranges. Lines with others are not decided here.
func (l *linear) addClass(ranges []rune, fold bool) bool {
	if l.n == 64*linearWords {
		return false
	}
	word, bit := l.n/64, uint64(1)<<(l.n%64)
	for i := 0; i+1 < len(ranges); i += 2 {
		for c := ranges[i]; c <= min(ranges[i+1], utf8.RuneSelf-1); c++ {
			l.mask[c][word] |= bit
			if lower := c | 0x20; fold && 'a' <= lower && lower <= 'z' {
				l.mask[lower][word] |= bit
				l.mask[lower&^0x20][word] |= bit
			}
		}
	}
	l.mask['\n'][word] &^= bit
	l.n++
	return true
}

// find finds the matching lines of b, which ends with a newline. Lines that are not ASCII are matched by matches. If
// crlf is true, a \r before the newline is not part of a line.
func (l *linear) find(b []byte, crlf bool, h *hits, matches func(line []byte) (bool, error)) error {
	ascii := false // the line around the last position matches
	next := func(from int) (at int) {
		at, ascii = l.next(b, from, crlf)
		return at
	}
	return findLines(b, h, next, func(line []byte) (bool, error) {
		if ascii {
			return true, nil
		}
		return matches(line)
	})
}

// walkLong walks over a line that is read block by block, without its newline, as [walker.walkLong] does. ok is false
// if the line is not ASCII.
func (l *linear) walkLong(ctx context.Context, line io.Reader) (match bool, end int64, ok bool, err error) {
	buf := make([]byte, longBlock)
	base, fill := int64(0), 0
	for {
		if err := ctx.Err(); err != nil {
			return false, 0, false, err
		}
		n, err := io.ReadFull(line, buf[fill:])
		fill += n
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return false, 0, false, err
		}
		at, ascii := l.next(buf[:fill], 0, false)
		if at < fill || last {
			return at < fill, base + int64(at) + 1, at == fill || ascii, nil
		}
		keep := min(l.n-1, fill) // a match may begin there
		base += int64(fill - keep)
		fill = copy(buf, buf[fill-keep:fill])
	}
}

// next returns the last byte of the first match at or after from, the start of a line, or the first byte that is not
// ASCII if that comes first; len(b) if there is neither.
func (l *linear) next(b []byte, from int, crlf bool) (at int, ascii bool) {
	if l.n <= 64 {
		return l.nextShort(b, from, crlf)
	}
	var d [linearWords]uint64
	last, bit := (l.n-1)/64, uint64(1)<<((l.n-1)%64)
	for i := from; i < len(b); i++ {
		c := b[i]
		if c >= utf8.RuneSelf {
			return i, false
		}
		m := &l.mask[c]
		carry := uint64(1)
		for k := 0; k <= last; k++ {
			shifted := d[k]<<1 | carry
			carry = d[k] >> 63
			d[k] = shifted & m[k]
		}
		if d[last]&bit != 0 && !(crlf && c == '\r' && i+1 < len(b) && b[i+1] == '\n') {
			return i, true
		}
	}
	return len(b), true
}

// nextShort is next for at most 64 positions.
func (l *linear) nextShort(b []byte, from int, crlf bool) (at int, ascii bool) {
	var d uint64
	bit := uint64(1) << (l.n - 1)
	for i := from; i < len(b); i++ {
		c := b[i]
		if c >= utf8.RuneSelf {
			return i, false
		}
		if d = (d<<1 | 1) & l.mask[c][0]; d&bit != 0 && !(crlf && c == '\r' && bytes.HasPrefix(b[i+1:], newline)) {
			return i, true
		}
	}
	return len(b), true
}
