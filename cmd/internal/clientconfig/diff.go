package clientconfig

import (
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxShown = 400     // bytes of a line that are shown
	maxCells = 4 << 20 // of the table of common lines; a change of more lines is shown as one
)

// Diff returns the removed and the added lines. Of a long line, it shows the part that differs.
func Diff(before, after []byte) string {
	a, b := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	small := len(a)*len(b) < maxCells
	common := make([][]int, len(a)+1) // how many lines a[i:] and b[j:] have in common, in order
	for i := len(a); i >= 0 && small; i-- {
		common[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0 && i < len(a); j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	add := func(mark, line, other string) {
		at := 0
		for at < min(len(line), len(other)) && line[at] == other[at] {
			at++
		}
		if at > maxShown/2 {
			line = "…" + strings.ToValidUTF8(line[at-maxShown/4:], "")
		}
		if line != "" {
			out.WriteString(mark + content.ClipBytes(strings.TrimRight(line, "\r\n"), maxShown) + "\n")
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case small && i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || !small || common[i+1][j] >= common[i][j+1]):
			add("- ", a[i], strings.Join(b[j:min(j+1, len(b))], ""))
			i++
		default:
			add("+ ", b[j], strings.Join(a[max(i-1, 0):min(i, len(a))], ""))
			j++
		}
	}
	return out.String()
}
