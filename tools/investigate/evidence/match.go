package evidence

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	minQuote = 3  // characters; a shorter quote anchors nothing
	maxParts = 32 // parts between ellipses; a quote with more of them anchors nothing
	maxSpan  = 50 // lines over which the parts may spread outside the cited lines
)

// source is the text of a file in which each run of white space is one blank.
type source struct {
	text   string // begins with a blank; each line that is not blank ends with one
	starts []int  // offset of each line in text, then len(text)
	err    error  // set if the file could not be read
}

func newSource(b []byte, err error) *source {
	s := &source{err: err}
	var out strings.Builder
	out.WriteByte(' ')
	for line := range strings.Lines(string(b)) {
		s.starts = append(s.starts, out.Len())
		for word := range strings.FieldsSeq(line) {
			out.WriteString(word + " ")
		}
	}
	s.text = out.String()
	s.starts = append(s.starts, len(s.text))
	return s
}

func (s *source) lines() int { return len(s.starts) - 1 }

// line returns the number, from 1, of the line at the offset; a blank belongs to the word after it.
func (s *source) line(offset int) int {
	if s.text[offset] == ' ' {
		offset++
	}
	return sort.Search(len(s.starts), func(i int) bool { return s.starts[i] > offset })
}

// index returns the offset of part in text[lo:hi], or -1. It counts the work and gives up at maxWork.
func (c *checker) index(s *source, part string, lo, hi int) int {
	if c.work > maxWork || lo > hi {
		return -1
	}
	before, _, found := strings.Cut(s.text[lo:hi], part)
	if c.work += len(before) + len(part); !found {
		return -1
	}
	return lo + len(before)
}

// find returns the line closest to want at which the parts begin, or 0. The parts must appear in order, in the lines
// from to to, and spread over at most span lines. Of two lines at the same distance it returns the first.
func (c *checker) find(s *source, parts []string, from, to, want, span int) int {
	if from, to = max(from, 1), min(to, s.lines()); from > to {
		return 0
	}
	distance := func(line int) int { return max(line-want, want-line) }
	best, lo, hi := 0, s.starts[from-1]-1, s.starts[to]
	offsets := make([]int, len(parts)) // they only grow, so the search is linear
	for {
		at := c.index(s, parts[0], lo, hi)
		if at < 0 {
			return best
		}
		line, end := s.line(at), at+len(parts[0])
		if best > 0 && line > want && distance(line) >= distance(best) {
			return best
		}
		for k := 1; k < len(parts); k++ {
			if offsets[k] < end {
				if offsets[k] = c.index(s, parts[k], end, hi); offsets[k] < 0 {
					return best
				}
			}
			end = offsets[k] + len(parts[k])
		}
		fits := len(parts) == 1 || s.line(max(end-2, at))-line < span
		if fits && (best == 0 || distance(line) < distance(best)) {
			best = line
		}
		lo = s.starts[line] - 1 // one match per line is enough
	}
}

var (
	spaces   = content.Pattern(`[\s\v\x{85}\pZ]+`)
	ellipsis = content.Pattern(` ?(?:…|\.{3,}) ?`)
	wordChar = content.Pattern(`[\pL\pN]`)
)

// quoteParts returns the parts of a quote between ellipses, each run of white space one blank.
// It returns nil if the quote anchors nothing: fewer than 3 characters, or no letter and no digit.
func quoteParts(quote string) []string {
	parts := ellipsis().Split(spaces().ReplaceAllString(quote, " "), maxParts+1)
	parts = slices.DeleteFunc(parts, func(part string) bool { return strings.TrimSpace(part) == "" })
	all := strings.Join(parts, "")
	if utf8.RuneCountInString(strings.TrimSpace(all)) < minQuote || len(parts) > maxParts || !wordChar().MatchString(all) {
		return nil
	}
	return parts
}
