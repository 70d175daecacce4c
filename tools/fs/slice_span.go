package fs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// span is a range as a call names it: both ends included, or the last ones.
type span struct {
	from, to int64 // to is open where the range has no end
	last     int64 // not 0: the last so many, and from and to mean nothing
}

const open = math.MaxInt64

// farthest stands for every number that no source reaches.
const farthest = open - 2

func (s span) String() string {
	switch {
	case s.last > 0:
		return "-" + strconv.FormatInt(s.last, 10)
	case s.to == open:
		return strconv.FormatInt(s.from, 10) + "-"
	case s.from == s.to:
		return strconv.FormatInt(s.from, 10)
	}
	return strconv.FormatInt(s.from, 10) + "-" + strconv.FormatInt(s.to, 10)
}

// resolve puts numbers to the last ones of total, where the first is number first.
func (s span) resolve(first, total int64) span {
	if s.last == 0 {
		return s
	}
	return span{from: first + max(total-s.last, 0), to: open}
}

// parseSpan takes "5", "5-9", "5-" and "-9" (the last nine).
func parseSpan(unit, given string) (span, error) {
	first := int64(0)
	if unit == "lines" {
		first = 1
	}
	bad := func(why string) (span, error) {
		return span{}, fmt.Errorf("%s %q: %s; ranges are %d, %d-%d, %d- and -9 (the last 9)", unit, content.ClipBytes(given, 100), why, first+4, first+4, first+8, first+4)
	}
	text := strings.TrimSpace(given)
	a, b, ranged := strings.Cut(text, "-")
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	from, okFrom := number(a)
	to, okTo := number(b)
	var s span
	switch {
	case !ranged && okFrom:
		s = span{from: from, to: from}
	case ranged && a == "" && okTo:
		if to == 0 {
			return bad("the last none")
		}
		return span{last: to}, nil
	case ranged && okFrom && b == "":
		s = span{from: from, to: open}
	case ranged && okFrom && okTo:
		s = span{from: from, to: to}
		if to == farthest { // and what follows a page of it is told so
			s.to = open
		}
	default:
		return bad("not a range")
	}
	switch {
	case s.from < first:
		return bad("lines count from 1")
	case s.to < s.from:
		return bad("it ends before it begins")
	}
	return s, nil
}

// number takes decimal digits; a number that no source reaches is as good as the largest.
func number(s string) (int64, bool) {
	if s == "" || len(s) > 100 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > farthest {
		return farthest, true
	}
	return n, true
}
