package kinds

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestSniffDiffs detects the diffs of git, hg, svn and diff, coloured, binary or cut.
func TestSniffDiffs(t *testing.T) {
	const (
		git  = "diff --git a/f b/f\nindex 1..2 100644\n"
		hunk = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
	)
	base85 := strings.Repeat("z"+strings.Repeat("V<E~h", 13)+"\n", 30)
	coloured := "\x1b[1m" + strings.ReplaceAll(git+hunk, "\n", "\x1b[m\n\x1b[1m")
	commit := "commit " + strings.Repeat("a", 40) + "\nAuthor: A <a@x>\nDate:   2026-11-20\n\n    S\n"
	for _, tt := range []struct {
		text, name string
		want       content.Kind
	}{
		{text: git + "GIT binary patch\nliteral 1000\n" + base85 + "\nliteral 0\nHcmV?d00001\n\n" + git + hunk},
		{text: coloured},
		{text: "\x1b[33m" + commit + "\x1b[m\n" + coloured},
		{text: "\x1b[33m" + commit + "\x1b[m\n", want: content.GitLog},
		{text: "Index: f\n" + strings.Repeat("=", 67) + "\nCannot display: file marked as a binary type.\n" +
			"svn:mime-type = image/png\n"},
		{text: "Index: f\n" + strings.Repeat("=", 67) + "\n--- f\t(revision 1)\n+++ f\t(working copy)\n\n" +
			"Property changes on: f\n___\nAdded: p\n## -0,0 +1 ##\n+x\n\\ No newline at end of property\n"},
		{text: "diff -r 0123456789ab x y\nBinary file x y has changed\n"},
		{text: "Binary files a/x and b/x differ\n"},
		{text: git[:25]}, {text: git[:30]}, {text: git + hunk[:10]}, {text: hunk[:20], want: content.Diff},
		{text: git[:12], name: "a.diff"},
		{text: "Index: the list of names\nof this book\n", want: content.Text},
		{text: "--- a\n+++ b\nand so on\n", want: content.Text},
		{text: "Binary files differ from texts\nin their bytes\n", want: content.Text},
	} {
		if tt.want == "" {
			tt.want = content.Diff
		}
		expect.Equal(t, Sniff([]byte(tt.text), true, tt.name), tt.want, tt.text)
	}
}
