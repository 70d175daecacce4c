package content

import "bytes"

// terminalControl matches the sequences by which programs colour and move text on a terminal.
var terminalControl = Pattern("\x1b\\[[0-9;:?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)|\x1b[=>()][A-Z0-9]?")

// TerminalLine returns a line as a terminal would show it at the end: without colours, and only its last state if it was
// overwritten after a carriage return.
func TerminalLine(line []byte) []byte {
	if bytes.IndexByte(line, '\x1b') >= 0 {
		line = terminalControl().ReplaceAll(line, nil)
	}
	line = bytes.TrimRight(line, "\r")
	return line[bytes.LastIndexByte(line, '\r')+1:]
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
