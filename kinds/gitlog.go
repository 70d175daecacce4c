package kinds

import (
	"bytes"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/gitlog"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// GitLog is the output of git log.
var GitLog = &Kind{
	Name:       content.GitLog,
	Ext:        "gitlog",
	MIME:       fixed("text/plain"),
	Sniff:      func(s *Sample) bool { return isGitLog(withoutEscapes(s.lines())) },
	Summarizer: func(string, []byte) digest.Summarizer { return gitlog.New() },
	Records:    gitlog.Spans,
	Objects:    gitlog.Objects,
	RecordIs:   "a commit {commit, author, date, subject, files, added, deleted}",
	RecordNote: "files is a number; the last three are null without --stat or --numstat",
	Shares:     Shares{Says: 0.3, Shape: 0, Body: 0.7},
}

// isGitLog reports whether the text begins with the header of a commit that names its author.
func isGitLog(all [][]byte) bool {
	if len(all) < 3 {
		return false
	}
	if _, ok := gitlog.Header(all[0]); !ok {
		return false
	}
	return slices.ContainsFunc(all[1:min(len(all), 8)], func(l []byte) bool {
		return bytes.HasPrefix(l, []byte("Author: ")) || bytes.HasPrefix(l, []byte("author "))
	})
}
