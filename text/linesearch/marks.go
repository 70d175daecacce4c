package linesearch

import (
	"bytes"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// rareMark is the minimum number of bytes of a block for each occurrence of a byte that every match holds. If the byte
// is more frequent, most lines hold it, and searching these lines alone saves nothing.
const rareMark = 4 << 10

// findMarked finds the matching lines of a block by the rarest byte that every match holds, if few lines hold it; false
// if they are not few.
func (f *finder) findMarked(b []byte, h *hits) (bool, error) {
	if f.m.mark == nil {
		return false, nil
	}
	n := bytes.Count(b, f.m.mark)
	if n == 0 {
		return true, nil
	}
	if n > len(b)/rareMark {
		return false, nil
	}
	next := func(from int) int {
		if at := bytes.IndexByte(b[from:], f.m.mark[0]); at >= 0 {
			return from + at
		}
		return len(b)
	}
	return true, findLines(b, h, next, f.matchesLine)
}

// markOf returns the rarest byte that every match holds, as a slice; nil if there is none.
func markOf(all []byte) []byte {
	if len(all) == 0 {
		return nil
	}
	return []byte{slices.MinFunc(all, func(a, b byte) int { return literal.Frequency(a) - literal.Frequency(b) })}
}
