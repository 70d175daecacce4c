package content

import (
	"bytes"
	"slices"
)

// HunkLines counts down the remaining lines of a hunk of a diff.
type HunkLines struct {
	Old []int64 // remaining lines of each parent
	New int64   // remaining lines of the result
}

// Header parses a hunk header such as "@@ -1,2 +3,4 @@ func main()" and sets the counts. A merge has one more @ and
// one more range for each further parent. The counts are undefined if Header returns false.
func (h *HunkLines) Header(line []byte) (ok bool) {
	at := 0
	for at < len(line) && line[at] == '@' {
		at++
	}
	if at < 2 || at > 64 {
		return false
	}
	rest := line[at:]
	h.Old = h.Old[:0]
	for range at - 1 {
		var n int64
		if n, rest, ok = hunkRange(rest, '-'); !ok {
			return false
		}
		h.Old = append(h.Old, n)
	}
	if h.New, rest, ok = hunkRange(rest, '+'); !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(rest, []byte{' '})
	return ok && bytes.HasPrefix(rest, line[:at])
}

// Whole reports whether no lines remain: the hunk is complete.
func (h *HunkLines) Whole() bool {
	return h.New <= 0 && !slices.ContainsFunc(h.Old, func(n int64) bool { return n > 0 })
}

// Take counts a line and reports whether the line belongs to the hunk and adds or removes text. The line does not
// belong to the hunk if the hunk is already complete, or if the first characters of the line are not those of a hunk
// line.
func (h *HunkLines) Take(line []byte) (belongs, added, removed bool) {
	if len(line) > 0 && line[0] == '\\' { // "\ No newline at end of file"
		return true, false, false
	}
	if h.Whole() {
		return false, false, false
	}
	if len(h.Old) == 1 && len(line) > 0 && line[0] == ' ' { // most lines of most diffs
		h.Old[0]--
		h.New--
		return true, false, false
	}
	// An empty line is a context line whose leading blank was trimmed by some other program.
	columns := line[:min(len(line), len(h.Old))]
	for _, c := range columns {
		switch c {
		case '-':
			removed = true
		case '+':
			added = true
		case ' ':
		case '\r':
			columns = columns[:0]
		default:
			return false, false, false
		}
	}
	for i := range h.Old {
		if i >= len(columns) || columns[i] == '-' || columns[i] == ' ' && !removed {
			h.Old[i]--
		}
	}
	if !removed {
		h.New--
	}
	return true, added && !removed, removed
}

// hunkRange parses a range of a hunk header, " -1,2" (2 lines) or " -1" (1 line), and returns the rest of the header.
func hunkRange(p []byte, sign byte) (lines int64, rest []byte, ok bool) {
	if len(p) < 3 || p[0] != ' ' || p[1] != sign {
		return 0, p, false
	}
	_, rest, ok = digits(p[2:])
	if !ok {
		return 0, p, false
	}
	if len(rest) > 0 && rest[0] == ',' {
		return digits(rest[1:])
	}
	return 1, rest, true
}

// digits parses a decimal number of up to 18 digits at the start of p.
func digits(p []byte) (n int64, rest []byte, ok bool) {
	i := 0
	for i < len(p) && i < 18 && p[i]-'0' < 10 {
		n = n*10 + int64(p[i]-'0')
		i++
	}
	return n, p[i:], i > 0
}
