package secrets

import (
	"bytes"
	"strings"
)

// matchToken is the matcher of the formats in the table, which are defined by a shape alone.
func matchToken(s *scan, h *hit, from int) (finding, bool) {
	f := h.format
	shape := f.shape()
	body := from + len(f.keywordAt(s.b[from:]))
	begin, ok := backParts(s.b, s.doneTo, from, shape.before)
	if !ok || !f.inWord && !startsWord(s.b, begin) {
		return finding{}, false
	}
	end, ok, more := matchParts(s.b, body, shape.parts)
	if !ok && shape.before == nil && s.clipped(f, body, end) {
		return finding{from: begin, to: end, public: body - begin, format: f}, true
	}
	if !ok && (!more || s.final || end-body < checkedBytes) {
		return finding{}, false
	}
	sampled, public := body, body-begin
	if shape.before != nil {
		sampled, public = begin, 0
	}
	sample := s.b[sampled:min(end, sampled+checkedBytes)]
	if entropy(sample) < f.bits || hasPlaceholder(sample, isToken) {
		return finding{}, false
	}
	if last := shape.parts[len(shape.parts)-1]; ok && last.max == unbounded {
		end += last.set.run(s.b[end:], unbounded)
	}
	return finding{from: begin, to: end, public: public, format: f}, true
}

// keywordAt returns the longest keyword of the format that starts b, as written there.
func (f *Format) keywordAt(b []byte) string {
	best := ""
	for k := range strings.SplitSeq(f.Keywords, "|") {
		if len(k) > len(best) && len(b) >= len(k) &&
			(string(b[:len(k)]) == k || f.fold && strings.EqualFold(string(b[:len(k)]), k)) {
			best = k
		}
	}
	return best
}

// clipped reports whether b[body:end], which is too short for its format, is a token that was truncated at end.
func (s *scan) clipped(f *Format, body, end int) bool {
	b := s.b[body:end]
	if bytes.HasPrefix(s.b[end:], cutOff) {
		return len(b) >= 4
	}
	return len(b) >= minClipped && s.cutAt(end) && (f.inWord || jumbled(b)) &&
		!hasPlaceholder(b[:min(len(b), checkedBytes)], isToken)
}

// jumbled reports whether b looks random, unlike a word or an identifier: at least a quarter of its bytes are a
// change between digits, lower case and other bytes.
func jumbled(b []byte) bool {
	kind := func(c byte) int {
		switch {
		case digits[c]:
			return 1
		case c >= 'a' && c <= 'z':
			return 2
		}
		return 3
	}
	changes := 0
	for i := 1; i < len(b); i++ {
		if kind(b[i]) != kind(b[i-1]) {
			changes++
		}
	}
	return changes*4 >= len(b)
}
