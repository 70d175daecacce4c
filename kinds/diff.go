package kinds

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/kinds/diff"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Diff is a unified diff, from git or from plain diff.
var Diff = &Kind{
	Name:       content.Diff,
	Ext:        "diff",
	MIME:       fixed("text/x-diff"),
	Sniff:      func(s *Sample) bool { return isDiff(s.lines(), s.ext) },
	Summarizer: func(string, []byte) digest.Summarizer { return withoutMark(diff.New()) },
	Records:    diff.Spans,
	Objects:    diff.Objects,
	RecordIs:   "a file {file, old_file, status, added, deleted, hunks: [{at, lines, added, deleted, header}]}",
	RecordNote: "status is added, deleted, modified or renamed; at is a line of the diff; counts of a binary file are null",
	Shares:     Shares{Says: 0.35, Shape: 0, Body: 0.7},
}

// isDiff looks in the first lines for a file header that is followed by a hunk or by git's extended headers; a
// commit message or a mail header may precede it. A diff inside a Markdown code fence does not count.
func isDiff(all [][]byte, ext string) bool {
	const before = 200
	at := -1
	for i, l := range all {
		if i > before || bytes.HasPrefix(l, []byte("```")) || bytes.HasPrefix(l, []byte("~~~")) {
			return false
		}
		hunk := new(content.HunkLines).Header(l)
		if fileHeader(all[i:]) || hunk && (ext == ".diff" || ext == ".patch") {
			at = i
			break
		}
	}
	if at < 0 {
		return false
	}
	fits, n := 0, 0
	for _, l := range all[at:] {
		n++
		if len(l) == 0 || bytes.IndexByte([]byte(" +-@\\"), l[0]) >= 0 || gitLine().Match(l) {
			fits++
		}
	}
	return fits*10 >= n*8
}

// gitLine matches lines between the files of a diff: git's extended headers and commit headers.
var gitLine = content.Pattern(
	`^(diff |index |old mode|new mode|deleted file|new file|similarity |dissimilarity |rename |copy |mode |Binary files |GIT binary|Only in |commit [0-9a-f]{7}|Author:|AuthorDate:|CommitDate:|Commit:|Date:|Merge:|From |Subject:|Index: |=====|literal |delta )`,
)

func fileHeader(all [][]byte) bool {
	l := all[0]
	switch {
	case bytes.HasPrefix(l, []byte("diff --git ")), bytes.HasPrefix(l, []byte("diff --cc ")), bytes.HasPrefix(
		l, []byte("diff --combined "),
	):
		return len(all) == 1 || gitLine().Match(all[1]) || bytes.HasPrefix(all[1], []byte("--- "))
	case bytes.HasPrefix(l, []byte("--- ")) && len(all) > 1 && bytes.HasPrefix(all[1], []byte("+++ ")):
		if len(all) == 2 {
			return true
		}
		ok := new(content.HunkLines).Header(all[2])
		return ok
	}
	return false
}
