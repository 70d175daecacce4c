package fs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// sliceRange is a range as a call gives it: both ends included, or the last units.
type sliceRange struct {
	from, to int64 // to is openEnd if the range has no end
	last     int64 // if not 0: the last so many units; from and to are not used
}

// openEnd is the end of a range without an end.
const openEnd = math.MaxInt64

// maxNumber is used for larger numbers too; no source has as many units.
const maxNumber = openEnd - 2

func (s sliceRange) String() string {
	switch {
	case s.last > 0:
		return "-" + strconv.FormatInt(s.last, 10)
	case s.to == openEnd:
		return strconv.FormatInt(s.from, 10) + "-"
	case s.from == s.to:
		return strconv.FormatInt(s.from, 10)
	}
	return strconv.FormatInt(s.from, 10) + "-" + strconv.FormatInt(s.to, 10)
}

// resolveLast turns "the last n" into a range, given the total and the number of the first unit.
func (s sliceRange) resolveLast(first, total int64) sliceRange {
	if s.last == 0 {
		return s
	}
	return sliceRange{from: first + max(total-s.last, 0), to: openEnd}
}

// firstOf returns the number of the first unit.
func firstOf(unit string) int64 {
	if unit == "lines" {
		return 1
	}
	return 0
}

// parseRange parses "5", "5-9", "5-" and "-9" (the last nine).
func parseRange(unit, given string) (sliceRange, error) {
	first := firstOf(unit)
	bad := func(why string) (sliceRange, error) {
		return sliceRange{}, fmt.Errorf("%s %q: %s; valid ranges are %d, %d-%d, %[4]d- and -9 (the last 9)", unit,
			content.ClipBytes(given, 100), why, first+4, first+4, first+8)
	}
	text := strings.TrimSpace(given)
	a, b, ranged := strings.Cut(text, "-")
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	from, okFrom := parseNumber(a)
	to, okTo := parseNumber(b)
	var s sliceRange
	switch {
	case !ranged && okFrom:
		s = sliceRange{from: from, to: from}
	case ranged && a == "" && okTo:
		if to == 0 {
			return bad("an empty range")
		}
		return sliceRange{last: to}, nil
	case ranged && okFrom && b == "":
		s = sliceRange{from: from, to: openEnd}
	case ranged && okFrom && okTo:
		s = sliceRange{from: from, to: to}
		if to == maxNumber { // so that the call for the next page has no end either
			s.to = openEnd
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

// parseNumber parses decimal digits; larger numbers than maxNumber become maxNumber.
func parseNumber(s string) (int64, bool) {
	if s == "" || len(s) > 100 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > maxNumber {
		return maxNumber, true
	}
	return n, true
}
