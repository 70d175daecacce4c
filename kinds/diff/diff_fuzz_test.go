package diff

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/digesttest"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// plainDiff counts a diff as its header lines say, by a way of its own: for one that is no merge's, and has no
// lines but of hunks that are whole. ok is false where the text is no such diff.
func plainDiff(text string) (hunks, added, removed int64, ok bool) {
	text, ok = strings.CutSuffix(text, "\n")
	if !ok || strings.ContainsAny(text, "\r\x00") {
		return 0, 0, 0, false
	}
	lines := strings.Split(text, "\n")
	for len(lines) > 0 {
		var from, to, old, new int64
		n, err := fmt.Sscanf(lines[0], "@@ -%d,%d +%d,%d @@", &from, &old, &to, &new)
		if err != nil || n != 4 || min(from, old, to, new) < 0 || max(from, to) > 1e9 ||
			lines[0] != fmt.Sprintf("@@ -%d,%d +%d,%d @@", from, old, to, new) {
			return 0, 0, 0, false
		}
		hunks++
		lines = lines[1:]
		for old > 0 || new > 0 {
			if len(lines) == 0 || lines[0] == "" {
				return 0, 0, 0, false
			}
			switch lines[0][0] {
			case '+':
				added++
				new--
			case '-':
				removed++
				old--
			case ' ':
				old--
				new--
			default:
				return 0, 0, 0, false
			}
			lines = lines[1:]
		}
		if old < 0 || new < 0 {
			return 0, 0, 0, false
		}
	}
	return hunks, added, removed, hunks > 0
}

// FuzzDiff has the reader of diffs take any text: it does not break, counts what it shows, however it comes in
// pieces, and counts of plain diffs what plainDiff counts.
func FuzzDiff(f *testing.F) {
	for name, text := range digesttest.Cases(f) {
		if strings.HasSuffix(name, ".diff") {
			f.Add(text[:min(len(text), 3000)], 100)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		take := func(pieces ...[]byte) (*difference, digest.Summary) {
			d, s := New(), digest.Summary{}
			for _, p := range pieces {
				d.Add(p)
			}
			d.Finish(&s)
			return d, s
		}
		d, s := take(text)
		var added, removed, hunks int64
		for _, c := range d.list {
			added, removed, hunks = added+c.added, removed+c.removed, hunks+c.hunks
		}
		lines := int64(bytes.Count(text, []byte("\n")) + 1)
		switch {
		case d.read.files <= 2*diffFiles &&
			(added != d.added || removed != d.removed || hunks != d.read.hunks || int64(len(d.list)) != d.read.files):
			t.Errorf(
				"the files have %d hunks, +%d −%d; in all there are %d, +%d −%d",
				hunks,
				added,
				removed,
				d.read.hunks,
				d.added,
				d.removed,
			)
		case d.read.files+d.read.hunks+d.added+d.removed > 2*lines, // a hunk's header may begin a file
			s.Records != d.read.files:
			t.Errorf("%d files, %d hunks, +%d −%d in %d lines", d.read.files, d.read.hunks, d.added, d.removed, lines)
		}
		at := min(max(cut, 0), len(text))
		if _, again := take(text[:at], text[at:]); !slices.Equal(s.Total, again.Total) ||
			!slices.Equal(s.Says, again.Says) ||
			!slices.Equal(s.Body, again.Body) {
			t.Errorf("cut at %d it says %q, not %q", at, again.Total, s.Total)
		}
		if hunks, added, removed, ok := plainDiff(string(text)); ok &&
			(d.read.hunks != hunks || d.added != added || d.removed != removed) {
			t.Errorf(
				"%d hunks, +%d −%d; counted by hand %d, +%d −%d",
				d.read.hunks,
				d.added,
				d.removed,
				hunks,
				added,
				removed,
			)
		}
		s.EachOneLine()
		digesttest.Promises(t, s)
	})
}
