package logs

import "github.com/mcp-funnel/mcp-funnel/kinds/digest"

// signature hashes a line so that lines which differ only in words with digits have the same hash. It is FNV-1a of the
// line with a symbol that no byte is for each of these words, and with its bits mixed once more.
func signature(line []byte) uint64 {
	const offset, prime, wildcard = 14695981039346656037, 1099511628211, 0x100
	h, word, digit := uint64(offset), uint64(offset), false // word: the hash at the beginning of the current word
	for _, c := range line {
		if digest.IsWord[c] {
			h = (h ^ uint64(c)) * prime
			digit = digit || c-'0' <= 9
			continue
		}
		if digit {
			h, digit = (word^wildcard)*prime, false
		}
		h = (h ^ uint64(c)) * prime
		word = h
	}
	if digit {
		h = (word ^ wildcard) * prime
	}
	h *= 0x9E3779B97F4A7C15
	return h ^ h>>32
}
