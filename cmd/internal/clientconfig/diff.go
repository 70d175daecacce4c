package clientconfig

import (
	"bytes"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Diff returns the lines from the first that differs to the last, as they were and as they will be.
func Diff(before, after []byte) string {
	a, b := bytes.SplitAfter(before, []byte("\n")), bytes.SplitAfter(after, []byte("\n"))
	head, tail := 0, 0
	for head < min(len(a), len(b)) && bytes.Equal(a[head], b[head]) {
		head++
	}
	for tail < min(len(a), len(b))-head && bytes.Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	at := 0 // where the first of them differ: a file may be one long line
	for len(a) > 0 && len(b) > 0 && at < min(len(a[0]), len(b[0])) && a[0][at] == b[0][at] {
		at++
	}
	var out strings.Builder
	add := func(mark string, lines [][]byte) {
		for i, line := range lines {
			text := string(bytes.TrimRight(line, "\r\n"))
			if i == 0 && at > maxShown/2 {
				text = "…" + strings.ToValidUTF8(text[at-maxShown/4:], "")
			}
			if len(line) > 0 {
				out.WriteString(mark + content.ClipBytes(text, maxShown) + "\n")
			}
		}
	}
	add("- ", a)
	add("+ ", b)
	return out.String()
}

// maxShown is how many bytes of a line are shown.
const maxShown = 400
