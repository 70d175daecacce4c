package secrets

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// unbounded is the most bytes one part takes; what is longer is no token.
const unbounded = 16 << 10

// checked is how many bytes of a token its checks look at.
const checked = 64

// part of a shape: so many bytes of a class.
type part struct {
	set      *class
	min, max int
}

// shape of a token: its parts behind the keyword, and those before it.
type shape struct{ parts, before []part }

// read reads them when a keyword first asks for them: that of few formats is met in a process.
func read(parts, before string) func() shape {
	return sync.OnceValue(func() shape { return shape{parseShape(parts), parseShape(before)} })
}

// parseShape reads the small language of the table: literal characters and [ranges]{n}, {n,m} or {n,}. It panics on
// anything else: the table is part of the program.
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

// matchParts matches b[i:] from its beginning, each part taking as much as it can, but of one without an end at most
// checked bytes more than it needs. more says that b ended within a part that could have taken more.
func matchParts(b []byte, i int, parts []part) (end int, ok, more bool) {
	for k, p := range parts {
		n := p.set.run(b[i:], min(p.max, p.min+checked))
		if n < p.min {
			return i + n, false, i+n == len(b)
		}
		i += n
		if k == len(parts)-1 {
			if i == len(b) {
				return i, true, true
			}
			if n == p.max && p.set[b[i]] && p.max < unbounded {
				return i, false, false // a longer word
			}
		}
	}
	return i, true, false
}

// backParts is matchParts for what stands before a keyword that ends a token's beginning; it gives where that begins.
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
