package logs

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/kind/digest"
)

// listing counts lines that name a file: matches of grep -n and messages of compilers ("src/a.go:12: …"), and lines
// that are only a path.
type listing struct {
	lines int64
	found int64
	paths int64
	files digest.FileCounts // files of the lines "file:12: …"
	dirs  digest.FileCounts // directories of the path lines
}

// add counts a line. Empty lines and "--" (between groups of grep's context) are ignored.
func (l *listing) add(line []byte) {
	if len(line) == 0 || string(line) == "--" {
		return
	}
	l.lines++
	// If over a quarter of more than 100 lines name no file, the text is not a listing.
	if l.lines > 100 && 4*(l.found+l.paths) < 3*l.lines {
		return
	}
	if n := place(line); n > 0 {
		l.found++
		l.files.AddName(1, line[:n], -1)
		l.files.End()
		return
	}
	if i := bytes.LastIndexByte(line, '/'); i >= 0 && len(line) < 1024 && bytes.IndexByte(line, ' ') < 0 &&
		bytes.IndexByte(line, '=') < 0 && !bytes.Contains(line, []byte("://")) {
		l.paths++
		l.dirs.AddName(1, line[:max(i, 1)], -1)
		l.dirs.End()
	}
}

// place returns the length of the file name in "name:12:" or "name:12-"; 0 if there is none.
func place(line []byte) int {
	line = line[:min(len(line), 512)]
	i := bytes.IndexByte(line, ':')
	if i <= 0 || bytes.IndexByte(line[:i], ' ') >= 0 || bytes.IndexByte(line[:i], '/') < 0 &&
		bytes.IndexByte(line[:i], '.') < 0 {
		return 0
	}
	at := digitsEnd(line, i+1)
	if at == i+1 || at == len(line) || line[at] != ':' && line[at] != '-' || at-i > 8 || line[i-1]-'0' <= 9 &&
		bytes.IndexByte(line[:i], '/') < 0 {
		return 0 // 10:30: is a time
	}
	return i
}

// is reports whether at least 90 % of the lines are matches, or at least 90 % are paths.
func (l *listing) is() bool {
	return l.lines >= 5 && (10*l.found >= 9*l.lines || 10*l.paths >= 9*l.lines)
}

// summarize adds the totals to the summary, "300 matches in 12 files" or "300 paths in 12 directories", and the
// files or directories with most lines.
func (l *listing) summarize(s *digest.Summary) {
	f, n, one, more, in, ins := &l.files, l.found, "match", "matches", "file", "files"
	if l.paths > l.found {
		f, n, one, more, in, ins = &l.dirs, l.paths, "path", "paths", "directory", "directories"
	}
	total := content.Plural(n, one, more)
	if d := f.Distinct(); d >= 0 {
		total += " in " + content.Plural(d, in, ins)
	}
	s.Total = append(s.Total, total)
	if top := f.TopLine(); top != "" {
		s.Body = append(s.Body, top)
	}
}
