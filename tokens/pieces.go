package tokens

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// The two encodings cut a text into pieces before they merge bytes. Their
// patterns, as published with tiktoken:
//
//	o200k_base:
//	  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//	cl100k_base:
//	  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// They are matched by hand here: no regexp engine is linear on them.

type class = tables.Class

const (
	upper   = tables.Upper
	lower   = tables.Lower
	letter  = tables.Letter
	number  = tables.Number
	space   = tables.Space
	newline = tables.Newline
)

// at decodes the rune at i; size 0 at the end.
func at(s []byte, i int) (class, int) {
	if i < len(s) && s[i] < utf8.RuneSelf {
		return tables.ASCIIClass(s[i]), 1
	}
	return wide(s, i)
}

func wide(s []byte, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	r, n := utf8.DecodeRune(s[i:])
	return tables.ClassOf(r), n
}

// run is the end of the longest run from i whose runes have any of the classes.
func run(s []byte, i int, of class) int {
	for {
		c, n := at(s, i)
		if n == 0 || c&of == 0 {
			return i
		}
		i += n
	}
}

// nextO200k is the length of the first piece of s, which is not empty.
func nextO200k(s []byte) int {
	c, n := at(s, 0)
	if c&(newline|letter|number) == 0 { // the one character before a word
		if end := word(s, n); end > n {
			return end
		}
	}
	if c&(upper|lower) != 0 {
		if end := word(s, 0); end > 0 {
			return end
		}
	}
	return rest(s, c, n, "\r\n/")
}

// word matches the first two branches without their prefix from i: its end, or i.
func word(s []byte, i int) int {
	// [upper]* as far as it goes, then [lower]+; where nothing is left for lower, upper gives back
	// to the last rune that is both.
	u, both := i, -1
	bothEnd := 0
	for {
		c, n := at(s, u)
		if n == 0 || c&upper == 0 {
			break
		}
		if c&lower != 0 {
			both, bothEnd = u, u+n
		}
		u += n
	}
	end := run(s, u, lower)
	switch {
	case end > u:
	case both >= 0:
		end = bothEnd
	case u > i: // second branch: capitals alone
		end = u
	default:
		return i
	}
	return end + contraction(s[end:])
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd in any case at the start of s, else 0.
func contraction(s []byte) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		if s[1] >= 'A' {
			return 2
		}
	}
	if len(s) >= 3 {
		for _, two := range []string{"re", "ve", "ll"} {
			if bytes.EqualFold(s[1:3], []byte(two)) {
				return 3
			}
		}
	}
	return 0
}

// nextCL100k is the length of the first piece of s, which is not empty.
func nextCL100k(s []byte) int {
	if n := contraction(s); n > 0 {
		return n
	}
	c, n := at(s, 0)
	switch {
	case c&letter != 0:
		return run(s, 0, letter)
	case c&(newline|number) == 0:
		if end := run(s, n, letter); end > n {
			return end
		}
	}
	return rest(s, c, n, "\r\n")
}

// rest matches the branches the encodings share, from numbers on. c and n are
// the first rune's class and length; after says what may follow punctuation.
func rest(s []byte, c class, n int, after string) int {
	if c&number != 0 {
		end := n
		for range 2 {
			c, n := at(s, end)
			if c&number == 0 {
				break
			}
			end += n
		}
		return end
	}
	if c&(space|letter) == 0 || s[0] == ' ' {
		from := 0
		if s[0] == ' ' {
			from = 1
		}
		end := from
		for {
			c, n := at(s, end)
			if n == 0 || c&(space|letter|number) != 0 {
				break
			}
			end += n
		}
		if end > from {
			for end < len(s) && strings.IndexByte(after, s[end]) >= 0 {
				end++
			}
			return end
		}
	}
	// White space: to its last newline; else all but the last character, which belongs to what follows.
	end, last, lastNewline := 0, 0, -1
	for {
		c, n := at(s, end)
		if n == 0 || c&space == 0 {
			break
		}
		if c&newline != 0 {
			lastNewline = end
		}
		last = end
		end += n
	}
	switch {
	case lastNewline >= 0:
		return lastNewline + 1
	case end < len(s) && last > 0:
		return last
	case end > 0:
		return end
	}
	return n
}

// valid replaces invalid UTF-8 by U+FFFD, rune by rune, as a conversion to runes does.
func valid(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	return []byte(string([]rune(string(s))))
}
