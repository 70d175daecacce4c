package logs

import (
	"bytes"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// level is the level of a log line; worse levels are greater.
type level uint8

const (
	noLevel level = iota
	trace
	debug
	info
	notice
	warn
	failure
	fatal
	levels
)

var levelNames = [levels]string{"without level", "trace", "debug", "info", "notice", "warn", "error", "fatal"}

const (
	levelWithin = 128 // number of bytes after the time that are searched for a level
	levelLong   = 9   // length of the longest level name, "emergency"
)

// firstOf and secondOf share a bit for each pair of first two letters of a level. The test rejects nearly all words
// of a line at once.
var firstOf, secondOf = func() (first, second [256]uint8) {
	seconds := "renoaml"
	for _, pair := range []string{"tr", "de", "in", "no", "wa", "er", "em", "fa", "cr", "pa", "al", "se"} {
		bit := uint8(1) << strings.IndexByte(seconds, pair[1])
		first[pair[0]] |= bit
		first[pair[0]-0x20] |= bit
		second[pair[1]] |= bit
		second[pair[1]-0x20] |= bit
	}
	return first, second
}()

// levelOf returns the level of a line, which is passed without its time. The level is the first level name in
// capitals, in brackets, after level=, or before a colon. stamped reports whether the line has a time.
func levelOf(b []byte, stamped bool) level {
	if reportsFailure(b) || runnerFailure(b, stamped) {
		return failure
	}
	b = b[:min(len(b), levelWithin)]
	for i := 1; i < len(b); i++ {
		if firstOf[b[i-1]]&secondOf[b[i]] == 0 || i > 1 && digest.IsWord[b[i-2]] {
			continue
		}
		from := i - 1
		for i < len(b) && digest.IsWord[b[i]] {
			i++
		}
		if n := i - from; n < 3 || n > levelLong {
			continue
		}
		if l, upper := levelNamed(b[from:i]); l != noLevel &&
			(upper && !inLongerName(b, from, i) && !inLiteral(b, from, stamped) || levelByPosition(b, from, i, stamped)) {
			return l
		}
	}
	return noLevel
}

func levelNamed(word []byte) (l level, upper bool) {
	var low [levelLong]byte
	upper = true
	for i, c := range word {
		upper = upper && c < 'a'
		low[i] = c | 0x20
	}
	switch string(low[:len(word)]) {
	case "trace", "trace1", "trace2", "trace3", "trace4", "trace5", "trace6", "trace7", "trace8":
		return trace, upper
	case "debug":
		return debug, upper
	case "info":
		return info, upper
	case "notice":
		return notice, upper
	case "warn", "warning":
		return warn, upper
	case "error", "err":
		return failure, upper
	case "fatal", "critical", "crit", "panic", "alert", "emerg", "emergency", "severe":
		return fatal, upper
	}
	return noLevel, false
}

// inLongerName reports whether a word in capitals is part of a longer name: ERROR-42, X.ERROR, /INFO.
func inLongerName(b []byte, from, to int) bool {
	if from > 0 && bytes.IndexByte([]byte("-./\\$"), b[from-1]) >= 0 {
		return true
	}
	return to+1 < len(b) && (b[to] == '-' || b[to] == '.' || b[to] == '/') && digest.IsWord[b[to+1]]
}

// levelByPosition reports whether the position of a word makes the word a level, in upper or lower case.
func levelByPosition(b []byte, from, to int, stamped bool) bool {
	next := byte(' ')
	if to < len(b) {
		next = b[to]
	}
	if codeFollows(b[to:]) {
		return true
	}
	if from == 0 {
		return next == ':' || next == '[' || stamped && (next == ' ' || next == '\t' || next == '|')
	}
	switch b[from-1] {
	case '[', '<', '|':
		if inLiteral(b, from, stamped) {
			return false
		}
		return next == ']' || next == '>' || next == '|' || next == ' '
	case '=', '"':
		key := bytes.TrimRight(b[:from-1], `=": `)
		return bytes.HasSuffix(key, []byte("level")) || bytes.HasSuffix(key, []byte("lvl")) ||
			bytes.HasSuffix(key, []byte("severity"))
	case ':': // [core:error]
		open := bytes.LastIndexByte(b[:from], '[')
		return next == ']' && open >= 0 && bytes.IndexByte(b[open:from], ' ') < 0
	case ' ':
		return next == ':' && from >= 2 && b[from-2] == ':' && !inLiteral(b, from, stamped) // main.c:12:3: error: …
	}
	return false
}

// status returns the HTTP status of an access log line, which follows the quoted request; 0 if there is none.
func status(b []byte) int {
	i := bytes.Index(b, []byte(`" `))
	if i < 0 || i+5 > len(b) {
		return 0
	}
	s := b[i+2 : i+5]
	if s[0] < '1' || s[0] > '5' || s[1]-'0' > 9 || s[2]-'0' > 9 || i+5 < len(b) && digest.IsWord[b[i+5]] {
		return 0
	}
	return int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
}

// stamp finds the time b[from:to] at the start of a line, and the offset of the rest of the line. to is 0 if there
// is no time.
func stamp(b []byte) (from, to, rest int) {
	if len(b) < 8 {
		return 0, 0, 0
	}
	switch b[0] {
	case '[', '(':
		from = 1
	case 't':
		for _, key := range [...]string{"time=", "ts=", "timestamp="} {
			if bytes.HasPrefix(b, []byte(key)) {
				from = len(key)
				if b[from] == '"' {
					from++
				}
				break
			}
		}
		if from == 0 {
			return 0, 0, 0
		}
	case 'I', 'W', 'E', 'F': // glog: I1120 14:30:22.123456
		if digitsAt(b, 1, 4) && len(b) > 14 && b[5] == ' ' && clock(b, 6, false) > 6 {
			return 1, clock(b, 6, false), 0 // the letter is the level; rest 0 keeps the line whole
		}
	}
	if from == 1 && b[1] == ' ' && b[2]-'0' <= 9 {
		from = 2 // [ 11-20 14:30:22.123  1234: 5678 I/Tag ]
	}
	if c := b[from]; c-'0' > 9 && c-'A' >= 26 && c != ' ' {
		return 0, 0, 0
	}
	if to = date(b, from); to == from {
		to = clock(b, from, false)
	} else if t := clockAfter(b, to); t > to {
		to = t
		if b[from]-'A' < 26 {
			to = yearAfter(b, to)
		}
	}
	if to == from {
		if to = counter(b, from); to == from {
			return 0, 0, 0
		}
	}
	rest = to
	for rest < len(b) && closesStamp[b[rest]] {
		rest++
	}
	if rest == to && rest < len(b) && b[rest] != ':' {
		return 0, 0, 0 // 2026-11-20.txt
	}
	return from, to, rest
}

// closesStamp is true for the characters that may separate a time from the rest of the line.
var closesStamp = [256]bool{']': true, ')': true, ' ': true, '\t': true, '"': true, '|': true, ',': true}

func digitsAt(b []byte, i, n int) bool {
	return i+n <= len(b) && digitsEnd(b[:i+n], i) == i+n
}

// digitsEnd returns the end of the digits that begin at b[i], or i if there are none.
func digitsEnd(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// date returns the end of a date that begins at b[i], or i if there is none.
func date(b []byte, i int) int {
	switch {
	case digitsAt(b, i, 4) && digitsAt(b, i+5, 2) && digitsAt(b, i+8, 2) && b[i+4] == b[i+7] &&
		(b[i+4] == '-' || b[i+4] == '/' || b[i+4] == '.'):
		return i + 10
	case digitsAt(b, i, 2) && i+11 <= len(b) && b[i+2] == b[i+6] && (b[i+2] == '/' || b[i+2] == '-' || b[i+2] == ' ') &&
		month(b[i+3:]) && digitsAt(b, i+7, 4):
		return i + 11
	case digitsAt(b, i, 2) && digitsAt(b, i+3, 2) && digitsAt(b, i+6, 4) && b[i+2] == b[i+5] &&
		(b[i+2] == '/' || b[i+2] == '-' || b[i+2] == '.'):
		return i + 10
	case i+6 >= len(b):
	case b[i]-'A' < 26:
		return namedDate(b, i)
	case b[i]-'0' <= 9:
		return shortDate(b, i)
	}
	return i
}

// namedDate returns the end of a date that begins with a month or a day of the week, such as "Nov 20", "May 8, 2026"
// and "Wed Nov 20", or i if there is none.
func namedDate(b []byte, i int) int {
	if !month(b[i:]) || b[i+3] != ' ' {
		if end := weekdayEnd(b, i); end > i {
			if to := date(b, end); to > end {
				return to
			}
		}
		return i
	}
	to := digitsEnd(b[:i+6], i+4)
	if to == i+4 && b[to] == ' ' {
		to = digitsEnd(b[:i+6], to+1)
	}
	if b[to-1] == ' ' || to < i+6 && b[to] != ' ' && b[to] != ',' {
		return i
	}
	year := to
	if b[year] == ',' {
		year++
	}
	if digitsAt(b, year+1, 4) && b[year] == ' ' {
		return year + 5
	}
	return to
}

// weekdayEnd returns the end of the day of the week that begins at b[i], and of the space after it, or i if there is
// none.
func weekdayEnd(b []byte, i int) int {
	switch string(b[i:min(len(b), i+3)]) {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
	default:
		return i
	}
	at := i + 3
	for at < len(b) && at < i+9 && b[at]-'a' < 26 {
		at++
	}
	if at < len(b) && b[at] == ',' {
		at++
	}
	if at+6 < len(b) && b[at] == ' ' {
		return at + 1
	}
	return i
}

// shortDate returns the end of a date in few digits before a time of day, such as 5/18/2026, 26/11/20 and 11-20, or i
// if there is none.
func shortDate(b []byte, i int) int {
	first := digitsEnd(b, i)
	if first > i+2 || first == len(b) || b[first] != '/' && b[first] != '-' && b[first] != '.' {
		return i
	}
	to := digitsEnd(b, first+1)
	if to == first+1 || to > first+3 {
		return i
	}
	if to < len(b) && b[to] == b[first] {
		year := to + 1
		if to = digitsEnd(b, year); to != year+2 && to != year+4 {
			return i
		}
	} else if b[first] == '.' {
		return i
	}
	if clockAfter(b, to) == to {
		return i
	}
	return to
}

// clockAfter returns the end of the time of day that follows a date, which ends at b[i], or i if there is none.
func clockAfter(b []byte, i int) int {
	at := i
	for at < len(b) && at < i+2 && separates[b[at]] {
		at++
	}
	if to := clock(b, at, true); to > at && at > i {
		return to
	}
	return i
}

// separates is true for the characters between a date and a time of day.
var separates = [256]bool{'T': true, ' ': true, ':': true, '_': true, ',': true}

// yearAfter returns the end of the year that follows a time of day, as in "Wed Nov 20 14:30:22 UTC 2026", or i if there
// is none.
func yearAfter(b []byte, i int) int {
	if i+5 > len(b) || b[i] != ' ' || b[i+1]-'a' < 26 {
		return i
	}
	year := i
	for zone := 4; zone <= 5; zone++ { // " UTC", " CEST"
		if i+zone < len(b) && b[i] == ' ' && b[i+zone] == ' ' && (b[i+zone-1] == 'T' || b[i+zone-1] == 'C') {
			year = i + zone
		}
	}
	if digitsAt(b, year+1, 4) && b[year] == ' ' && (year+5 == len(b) || !digest.IsWord[b[year+5]]) {
		return year + 5
	}
	return i
}

func month(b []byte) bool {
	switch string(b[:min(len(b), 3)]) {
	case "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec":
		return true
	}
	return false
}

// clock returns the end of a time of day that begins at b[i], or i if there is none. An hour of one digit needs AM or
// PM, or a date before it.
func clock(b []byte, i int, dated bool) int {
	minutes, short := i+3, false
	if !digitsAt(b, i, 2) || i+2 == len(b) || b[i+2] != ':' {
		minutes, short = i+2, true
		if !digitsAt(b, i, 1) || i+1 == len(b) || b[i+1] != ':' {
			return i
		}
	}
	if !digitsAt(b, minutes, 2) {
		return i
	}
	at := minutes + 2
	if digitsAt(b, at+1, 2) && b[at] == ':' {
		at += 3
	} else if at < len(b) && digest.IsWord[b[at]] && halfDay(b, at) == at {
		return i
	}
	if digitsAt(b, at+1, 1) && (b[at] == '.' || b[at] == ',') {
		at = digitsEnd(b, at+1)
	}
	if end := halfDay(b, at); end > at {
		at = end
	} else if short && !dated {
		return i
	}
	zone := at
	if zone < len(b) && b[zone] == ' ' {
		zone++
	}
	switch {
	case at < len(b) && b[at] == 'Z':
		at++
	case zone < len(b) && (b[zone] == '+' || b[zone] == '-') && digitsAt(b, zone+1, 2):
		at = zone + 3
		if at < len(b) && b[at] == ':' {
			at++
		}
		if digitsAt(b, at, 2) {
			at += 2
		}
	}
	return at
}

// halfDay returns the end of AM or PM, which may follow a space, at b[i], or i if there is none: "PM", "am", "p.m.".
func halfDay(b []byte, i int) int {
	at := i
	switch {
	case i == len(b):
	case b[i] == ' ':
		at++
	case b[i] >= 0x80:
		for _, space := range [...]string{"\u00a0", "\u202f"} {
			if bytes.HasPrefix(b[i:], []byte(space)) {
				at += len(space)
			}
		}
	}
	if at+1 >= len(b) || b[at]|0x20 != 'a' && b[at]|0x20 != 'p' {
		return i
	}
	at++
	dot := b[at] == '.'
	if dot {
		at++
	}
	if at == len(b) || b[at]|0x20 != 'm' {
		return i
	}
	if at++; dot && at < len(b) && b[at] == '.' {
		at++
	}
	if at < len(b) && digest.IsWord[b[at]] {
		return i
	}
	return at
}

// counter returns the end of a number of seconds that begins at b[i], or i if there is none: Unix time (10 digits,
// or 13 with milliseconds), or seconds since boot as the kernel prints them, "[ 1.234567]".
func counter(b []byte, i int) int {
	at := i
	for at < len(b) && b[at] == ' ' && i > 0 {
		at++
	}
	from := at
	at = digitsEnd(b, at)
	n := at - from
	if at < len(b) && b[at] == '.' && digitsAt(b, at+1, 3) {
		at = digitsEnd(b, at+1)
		if n == 10 || i > 0 && n > 0 && at < len(b) && b[at] == ']' {
			return at
		}
		return i
	}
	if n == 10 || n == 13 {
		return at
	}
	return i
}

// midStamp finds the time of an access log line: 1.2.3.4 - - [20/Nov/2026:14:30:22 +0000].
func midStamp(b []byte) (from, to int) {
	b = b[:min(len(b), levelWithin)]
	i := bytes.IndexByte(b, '[')
	if i < 0 || len(b) < i+21 || date(b, i+1) != i+12 {
		return 0, 0
	}
	return i + 1, clock(b, i+13, true)
}
