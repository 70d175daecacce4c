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
	for pos := 0; pos < len(b); {
		at := bytes.IndexByte(b[pos:], f.m.mark[0])
		if at < 0 {
			break
		}
		at += pos
		start, next := pos+lastNewline(b[pos:at])+1, lineEnd(b, at)
		ok, err := f.matchesLine(b[start:next])
		if err != nil {
			return true, err
		}
		if ok {
			h.add(next - 1)
		}
		pos = next
	}
	return true, nil
}

// markOf returns the rarest byte that every match holds, as a slice; nil if there is none.
func markOf(all []byte) []byte {
	if len(all) == 0 {
		return nil
	}
	return []byte{slices.MinFunc(all, func(a, b byte) int { return literal.Frequency(a) - literal.Frequency(b) })}
}
