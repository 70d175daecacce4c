package secrets

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// part is one part of a shape: from min to max bytes of a set.
type part struct {
	set      *class
	min, max int
}

// shape is the pattern of a token: the parts after its keyword, and the parts before it.
type shape struct{ parts, before []part }

// lazyShape returns a function that parses a shape on its first call, because a process meets few of the formats.
func lazyShape(parts, before string) func() shape {
	return sync.OnceValue(func() shape { return shape{parseShape(parts), parseShape(before)} })
}

// parseShape parses the pattern syntax of the table: literal characters, and [ranges] with an optional {n}, {n,m} or
// {n,}. It panics on invalid patterns, because the table is part of the program.
func parseShape(s string) []part {
	var parts []part
	for i := 0; i < len(s); {
		if s[i] != '[' {
			parts = append(parts, part{classOf(s[i : i+1]), 1, 1})
			i++
			continue
		}
		end := i + strings.IndexByte(s[i:], ']')
		p := part{classOf(s[i+1 : end]), 1, 1}
		i = end + 1
		if i < len(s) && s[i] == '{' {
			end = i + strings.IndexByte(s[i:], '}')
			low, high, ranged := strings.Cut(s[i+1:end], ",")
			p.min = number(low)
			switch {
			case !ranged:
				p.max = p.min
			case high == "":
				p.max = unbounded
			default:
				p.max = number(high)
			}
			i = end + 1
		}
		parts = append(parts, p)
	}
	return parts
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(fmt.Sprintf("secrets: %q in a shape is no number", s))
	}
	return n
}

// matchParts matches the parts greedily against the start of b[i:] and returns the end of the match. A part without
// an upper limit matches at most checkedBytes bytes more than its minimum. more reports whether b ended within a part
// that needs or could match more bytes.
func matchParts(b []byte, i int, parts []part) (end int, ok, more bool) {
	for k, p := range parts {
		n := p.set.run(b[i:], min(p.max, p.min+checkedBytes))
		if n < p.min {
			return i + n, false, i+n == len(b)
		}
		i += n
		if k == len(parts)-1 {
			if i == len(b) {
				return i, true, true
			}
			if n == p.max && p.set[b[i]] && p.max < unbounded {
				return i, false, false // part of a longer word
			}
		}
	}
	return i, true, false
}

// backParts matches the parts before a keyword backwards from i, not beyond lo, and returns the start of the token.
func backParts(b []byte, lo, i int, parts []part) (from int, ok bool) {
	for k := len(parts) - 1; k >= 0; k-- {
		p := parts[k]
		n := p.set.back(b[lo:i], p.max)
		if n < p.min {
			return i, false
		}
		i -= n
	}
	return i, true
}
