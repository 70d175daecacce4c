package summary

import "bytes"

// listing counts lines that name a file: what grep -n and compilers found in it ("src/a.go:12: …"), or nothing but its path.
type listing struct {
	lines int64
	found int64
	paths int64
	files *files // of what was found
	dirs  *files // of the paths
}

func newListing() *listing { return &listing{files: newFiles(), dirs: newFiles()} }

// add counts a line; one that is empty or -- (between groups of grep's context) says nothing.
func (l *listing) add(line []byte) {
	if len(line) == 0 || string(line) == "--" {
		return
	}
	l.lines++
	// Where a quarter of the first lines, and of all so far, were none, the text is no listing.
	if l.lines > 100 && 4*(l.found+l.paths) < 3*l.lines {
		return
	}
	if n := place(line); n > 0 {
		l.found++
		l.files.see(1, line[:n], -1)
		l.files.end()
		return
	}
	if i := bytes.LastIndexByte(line, '/'); i >= 0 && len(line) < 1024 && bytes.IndexByte(line, ' ') < 0 && bytes.IndexByte(line, '=') < 0 && !bytes.Contains(line, []byte("://")) {
		l.paths++
		l.dirs.see(1, line[:max(i, 1)], -1)
		l.dirs.end()
	}
}

// place is the length of the file's name in "name:12:", "name:12-"; 0 where there is none.
func place(line []byte) int {
	line = line[:min(len(line), 512)]
	i := bytes.IndexByte(line, ':')
	if i <= 0 || bytes.IndexByte(line[:i], ' ') >= 0 || bytes.IndexByte(line[:i], '/') < 0 && bytes.IndexByte(line[:i], '.') < 0 {
		return 0
	}
	at := i + 1
	for at < len(line) && line[at]-'0' <= 9 {
		at++
	}
	if at == i+1 || at == len(line) || line[at] != ':' && line[at] != '-' || at-i > 8 || line[i-1]-'0' <= 9 && bytes.IndexByte(line[:i], '/') < 0 {
		return 0 // 10:30: is a time
	}
	return i
}

// is says whether nearly all lines are of one sort.
func (l *listing) is() bool {
	return l.lines >= 5 && (10*l.found >= 9*l.lines || 10*l.paths >= 9*l.lines)
}

// tell says what the lines name: "300 matches in 12 files", "300 paths in 12 directories", and those with most.
func (l *listing) tell(s *Summary) {
	f, n, one, more, in, ins := l.files, l.found, "match", "matches", "file", "files"
	if l.paths > l.found {
		f, n, one, more, in, ins = l.dirs, l.paths, "path", "paths", "directory", "directories"
	}
	total := counted(n, one, more)
	if d := f.distinct(); d >= 0 {
		total += " in " + counted(d, in, ins)
	}
	s.Total = append(s.Total, total)
	if top := f.topLine(); top != "" {
		s.Body = append(s.Body, top)
	}
}
