package content

import (
	"bytes"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// controlText matches the sequences by which programs colour and move text on a terminal.
const controlText = "(?:\x1b\\[[0-9;:?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)|\x1b[=>()][A-Z0-9]?)"

var terminalControl, firstControl = Pattern(controlText), Pattern("^" + controlText)

// terminalMove matches the sequences that move within a line.
var terminalMove = Pattern("\x1b\\[[0-9]*[CDG]")

// Limits: terminalWidth is the column that a sequence may move to if the text is not that wide.
const (
	terminalWidth = 200
	maxColumns    = 4096 // that are erased
	maxMarks      = 32   // bytes of a character with its accents
)

// TerminalLine returns a line as a terminal would show it at the end: without colours, and with what was written last
// in each column if the cursor moved back. A character is taken to be as wide as any other.
func TerminalLine(line []byte) []byte {
	line = bytes.TrimRight(line, "\r")
	escapes := bytes.IndexByte(line, '\x1b') >= 0
	switch {
	case bytes.IndexByte(line, '\r') >= 0 || bytes.IndexByte(line, '\b') >= 0 || escapes && terminalMove().Match(line):
		return overwritten(line)
	case escapes:
		return terminalControl().ReplaceAll(line, nil)
	}
	return line
}

// overwritten returns a line in which the cursor moves.
func overwritten(line []byte) []byte {
	var (
		cells  [][]byte
		at     int
		blank  = []byte{' '}
		extend = func(to int) {
			for len(cells) < to {
				cells = append(cells, blank)
			}
		}
	)
	for len(line) > 0 {
		n := 1
		switch line[0] {
		case '\r':
			at = 0
		case '\b':
			at = max(at-1, 0)
		case '\t':
			at = at&^7 + 8
			extend(at)
		case '\x1b':
			control := firstControl().Find(line)
			if control == nil {
				break
			}
			n = len(control)
			switch to := moved(line[:n], at); {
			case line[n-1] != 'K' || line[1] != '[':
				at = min(to, max(at, len(cells), terminalWidth))
				extend(at)
			case line[2] == '2' || line[2] == '1': // erase from the beginning
				for i := range min(at+1, len(cells), maxColumns) {
					cells[i] = blank
				}
				if line[2] == '2' {
					cells = cells[:min(at, len(cells))]
				}
			default:
				cells = cells[:min(at, len(cells))]
			}
		default:
			r, size := utf8.DecodeRune(line)
			n = size
			if unicode.Is(unicode.Mn, r) && at > 0 && len(cells[at-1]) < maxMarks { // it is shown on the one before it
				cells[at-1] = append(slices.Clone(cells[at-1]), line[:n]...)
				break
			}
			extend(at + 1)
			cells[at] = line[:n]
			at++
		}
		line = line[n:]
	}
	return bytes.TrimRight(bytes.Join(cells, nil), " ")
}

// moved returns the column to which a control sequence moves the cursor from a column.
func moved(control []byte, at int) int {
	last := len(control) - 1
	n, err := strconv.Atoi(string(control[min(2, last):last]))
	if n = min(n, 1<<20); err != nil {
		n = 1
	}
	switch {
	case control[1] != '[':
		return at
	case control[last] == 'C':
		return at + max(n, 1)
	case control[last] == 'D':
		return max(at-max(n, 1), 0)
	case control[last] == 'G':
		return max(n-1, 0)
	}
	return at
}

// WithoutEscapes appends b to dst without terminal escape sequences, which otherwise hide times and levels: colours
// (ESC [ … m), character sets (ESC ( B), links and titles (ESC ] … BEL).
func WithoutEscapes(dst, b []byte) []byte {
	for {
		at := bytes.IndexByte(b, 0x1b)
		if at < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:at]...)
		b = b[at+1:]
		last, i := byte('0'), 0 // the least byte that ends the sequence, and where it begins
		switch {
		case bytes.HasPrefix(b, []byte("[")):
			last, i = '@', 1
		case bytes.HasPrefix(b, []byte("]")):
			end := bytes.IndexAny(b, "\a\x1b")
			if end < 0 {
				return dst
			}
			if b = b[end:]; b[0] == '\a' {
				b = b[1:]
			}
			continue // ESC \ ends it too
		}
		for i < len(b) && b[i] >= ' ' && b[i] < last {
			i++
		}
		if i < len(b) && b[i] >= last && b[i] <= '~' {
			i++
		}
		b = b[i:]
	}
}
