package logs

import "bytes"

// layout describes the beginning of the last parsed line with a time. A line whose beginning equals it except for
// digits has its time and level at the same offsets, so the line need not be parsed again; see [logs.acceptSimilar].
type layout struct {
	from, to, rest int    // results of [stamp]; rest is 0 if there is no layout
	start          []byte // line[:rest]
}

// learn stores the beginning of a line that [stamp] has parsed. A capital letter must follow the beginning: no time
// contains one there, so the beginning alone decides where the time ends.
func (l *layout) learn(line []byte, from, to, rest int) {
	if rest <= to || rest >= len(line) || line[rest] < 'A' || line[rest] > 'Z' {
		l.rest = 0
		return
	}
	*l = layout{from: from, to: to, rest: rest, start: append(l.start[:0], line[:rest]...)}
}

// fits reports whether a line has this beginning.
func (l *layout) fits(line []byte) bool {
	return l.rest > 0 && len(line) > l.rest && sameButDigits(l.start, line)
}

// commonLevel recognises INFO, WARN, DEBUG and TRACE followed by a space, and returns noLevel for anything else.
func commonLevel(b []byte) level {
	switch end := bytes.IndexByte(b[:min(len(b), len("DEBUG "))], ' '); string(b[:max(0, end)]) {
	case "INFO":
		return info
	case "WARN":
		return warn
	case "DEBUG":
		return debug
	case "TRACE":
		return trace
	}
	return noLevel
}
