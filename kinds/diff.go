package kinds

import (
	"bytes"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/kinds/diff"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Diff is a unified diff: of git, hg, svn or plain diff.
var Diff = &Kind{
	Name:       content.Diff,
	Ext:        "diff",
	MIME:       fixed("text/x-diff"),
	Sniff:      func(s *Sample) bool { return isDiff(s.lines(), s.ext) },
	Summarizer: func(string, []byte) digest.Summarizer { return diff.New() },
	Records:    diff.Spans,
	Objects:    diff.Objects,
	RecordIs:   "a file {file, old_file, status, added, deleted, hunks: [{at, lines, added, deleted, header}]}",
	RecordNote: "status is added, deleted, modified, renamed, or null if the diff does not say; at is a line of the diff; " +
		"counts of a binary file are null; truncated is true if the diff lacks lines of the file, else absent",
	Shares: Shares{Says: 0.35, Shape: 0, Body: 0.7},
}

// isDiff looks in the first lines for a file header that is followed by a hunk or by git's extended headers; a
// commit message or a mail header may precede it. A diff inside a Markdown code fence does not count.
func isDiff(all [][]byte, ext string) bool {
	const before = 200
	all = withoutEscapes(all)
	at := -1
	for i, l := range all {
		if i > before || bytes.HasPrefix(l, []byte("```")) || bytes.HasPrefix(l, []byte("~~~")) {
			return false
		}
		named := ext == ".diff" || ext == ".patch"
		if fileHeader(all[i:]) || named && (new(content.HunkLines).Header(l) || bytes.HasPrefix(l, []byte("diff --git "))) {
			at = i
			break
		}
	}
	if at < 0 {
		return false
	}
	fits, n := 0, 0
	patch := false // inside lines in base 85
	for _, l := range all[at:] {
		n++
		if patch = len(l) > 0 && (patch || patchBlock().Match(l)); patch ||
			len(l) == 0 || bytes.IndexByte([]byte(" +-@\\"), l[0]) >= 0 || diffLine().Match(l) {
			fits++
		}
	}
	return fits*10 >= n*8
}

// diffLine matches lines between the files of a diff: extended headers, commit headers, svn's properties. patchBlock
// matches the line above a block of a binary patch; wholeHeader a line that names a file without a line that follows.
var (
	diffLine = content.Pattern(
		`^(diff |index |old mode|new mode|deleted file|new file|similarity |dissimilarity |rename |copy |mode |Binary files? |GIT binary|Only in |commit [0-9a-f]{7}|Author:|AuthorDate:|CommitDate:|Commit:|Date:|Merge:|From |Subject:|Index: |=====|Property changes on: |_____|(Added|Deleted|Modified): |## |Cannot display: |svn:|# |(changeset|user|date|summary): )`,
	)
	patchBlock  = content.Pattern(`^(literal|delta) \d+$`)
	wholeHeader = content.Pattern(`^(Binary files .+ and .+ differ$|diff( -r [0-9a-f]{12,40})+ )`)
)

// fileHeader reports whether a diff's header of a file begins with the first line. The text may end in it.
func fileHeader(all [][]byte) bool {
	l := all[0]
	switch {
	case bytes.HasPrefix(l, []byte("diff --git ")), bytes.HasPrefix(l, []byte("diff --cc ")),
		bytes.HasPrefix(l, []byte("diff --combined ")):
		return len(all) <= 2 || diffLine().Match(all[1]) || bytes.HasPrefix(all[1], []byte("--- "))
	case bytes.HasPrefix(l, []byte("Index: ")):
		return len(all) > 1 && len(bytes.Trim(all[1], "=")) == 0 && len(all[1]) > 4
	case bytes.HasPrefix(l, []byte("--- ")) && len(all) > 1 && bytes.HasPrefix(all[1], []byte("+++ ")):
		return len(all) == 2 || len(all) == 3 && bytes.HasPrefix(all[2], []byte("@")) || new(content.HunkLines).Header(all[2])
	}
	return wholeHeader().Match(l)
}

// withoutEscapes returns lines without terminal escape sequences.
func withoutEscapes(all [][]byte) [][]byte {
	if !slices.ContainsFunc(all, func(l []byte) bool { return bytes.IndexByte(l, 0x1b) >= 0 }) {
		return all
	}
	plain := make([][]byte, len(all))
	for i, l := range all {
		plain[i] = content.WithoutEscapes(nil, l)
	}
	return plain
}
