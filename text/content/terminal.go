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
