package savings

import (
	"fmt"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// truncate returns what a client shows that keeps the head and the tail of an output, both together of at most limit
// tokens, with a line between them that counts the characters left out.
func truncate(text string, limit int, counter *tokens.Counter) string {
	const room = 20 // tokens of that line
	prefix := func(n int) int { return counter.Count(text[:cut(text, n)]) }
	suffix := func(n int) int { return counter.Count(text[cut(text, len(text)-n):]) }
	if longest(len(text), prefix, limit) == len(text) {
		return text
	}
	head, tail := longest(len(text), prefix, limit/2), longest(len(text), suffix, limit-limit/2-room)
	from, to := cut(text, head), cut(text, len(text)-tail)
	return fmt.Sprintf(
		"%s\n… %d characters truncated …\n%s",
		text[:from],
		utf8.RuneCountInString(text[from:to]),
		text[to:],
	)
}

// cut returns the beginning of the character that holds byte n.
func cut(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// longest returns the greatest number of bytes up to most whose count is within the limit. A token has one byte or
// more, so that it tries doubling lengths before it halves the interval: it never counts all of a large text.
func longest(most int, count func(int) int, limit int) int {
	low, high := 0, min(limit+1, most)
	for high < most && count(high) <= limit {
		low, high = high, min(2*high, most)
	}
	if count(high) <= limit {
		return high
	}
	for high-low > 1 {
		if middle := (low + high) / 2; count(middle) <= limit {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
