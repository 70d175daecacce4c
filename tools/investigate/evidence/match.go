package evidence

import (
	"sort"
	"strings"
	"unicode"
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

// index returns the offset of a part in text[lo:hi], or -1. It counts the work and gives up at maxWork.
func (c *checker) index(s *source, p part, lo, hi int) int {
	for lo <= hi && c.work <= maxWork {
		before, _, found := strings.Cut(s.text[lo:hi], p.text)
		if c.work += len(before) + len(p.text); !found {
			break
		}
		lo += len(before)
		if (!p.left || isBorder(s.text, lo)) && (!p.right || isBorder(s.text, lo+len(p.text))) {
			return lo
		}
		lo++
	}
	return -1
}

// part is a part of a quote. left and right tell whether it begins and ends at the border of a word: an ellipsis that
// touches a part may cut a word.
type part struct {
	text        string
	left, right bool
}

// inNumber matches a split in the middle of a number, at NUL: 100 in 100.5 and in 100,000.
var inNumber = content.Pattern(`[0-9](?:\x00\.|\.\x00)[0-9]|[0-9](?:\x00,|,\x00)[0-9]{3}(?:[^0-9]|$)`)

// isBorder reports whether no word and no number goes on across an offset of a text.
func isBorder(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return !(inWord(before) && inWord(after)) &&
		!inNumber().MatchString(text[max(at-2, 0):at]+"\x00"+text[at:min(at+5, len(text))])
}

// inWord reports whether a rune goes on a word. Words of scripts that write none apart end anywhere.
func inWord(r rune) bool {
	return (isWord(r) || r == '_' || unicode.IsMark(r)) && (r < 0x0e00 || !unicode.In(r, unicode.Han, unicode.Hiragana,
		unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// find returns the line closest to want at which the parts begin, or 0. The parts must appear in order, in the lines
// from to to, and spread over at most span lines. Of two lines at the same distance it returns the first.
func (c *checker) find(s *source, parts []part, from, to, want, span int) int {
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
		line, end := s.line(at), at+len(parts[0].text)
		if best > 0 && line > want && distance(line) >= distance(best) {
			return best
		}
		for k := 1; k < len(parts); k++ {
			if offsets[k] < end {
				if offsets[k] = c.index(s, parts[k], end, hi); offsets[k] < 0 {
					return best
				}
			}
			end = offsets[k] + len(parts[k].text)
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
	ellipsis = content.Pattern(`…|\.{3,}`)
	wordChar = content.Pattern(`[\pL\pN]`)
)

// quoteParts returns the parts of a quote between ellipses, each run of white space one blank.
// It returns nil if the quote anchors nothing: fewer than 3 characters, or no letter and no digit.
func quoteParts(quote string) (parts []part) {
	pieces := ellipsis().Split(spaces().ReplaceAllString(quote, " "), maxParts+1)
	all, last := "", len(pieces)-1
	for i, text := range pieces {
		p := part{text, i == 0 || strings.HasPrefix(text, " "), i == last || strings.HasSuffix(text, " ")}
		if i > 0 {
			p.text = strings.TrimPrefix(p.text, " ")
		}
		if i < last {
			p.text = strings.TrimSuffix(p.text, " ")
		}
		if strings.TrimSpace(p.text) != "" {
			parts = append(parts, p)
			all += p.text
		}
	}
	if utf8.RuneCountInString(strings.TrimSpace(all)) < minQuote || len(parts) > maxParts || !wordChar().MatchString(all) {
		return nil
	}
	return parts
}
