package clientconfig

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxShown is how many bytes of a line are shown.
const maxShown = 400

// Diff returns the removed and the added lines. Of a long line, it shows the part that differs.
func Diff(before, after []byte) string {
	var out strings.Builder
	var removed, added []string // of a place
	show := func(mark string, lines, others []string) {
		for i, line := range lines {
			other, at := strings.Join(others[min(i, len(others)):min(i+1, len(others))], ""), 0
			for at < min(len(line), len(other)) && line[at] == other[at] {
				at++
			}
			if at > maxShown/2 {
				line = "…" + strings.ToValidUTF8(line[at-maxShown/4:], "")
			}
			out.WriteString(mark + content.ClipBytes(strings.TrimRight(line, "\r\n"), maxShown) + "\n")
		}
	}
	rows := strings.SplitAfter(string(diff.Diff("", before, "", after)), "\n")
	for _, row := range rows[min(3, len(rows)):] { // three name the texts
		switch {
		case strings.HasPrefix(row, "-"):
			removed = append(removed, row[1:])
		case strings.HasPrefix(row, "+"):
			added = append(added, row[1:])
		case !strings.HasPrefix(row, `\`): // it stays; \ says that no end of line is before it
			show("- ", removed, added)
			show("+ ", added, removed)
			removed, added = nil, nil
		}
	}
	return out.String()
}
