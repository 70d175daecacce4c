package logs

import (
	"bytes"
	"path"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// listing counts lines that name a file, in the forms that search tools and compilers print:
//
//	src/a.go:12: text    a match of grep -n, or a message of a compiler
//	src/a.go-13-text     a line of context of grep -n -C
//	src/a.go:3           the number of matches in a file, of grep -c
//	src/a.go             a path; or, above lines such as "12:text" and "13-text", a heading of rg --heading
type listing struct {
	lines   int64
	known   int64 // number of lines in any of the forms
	found   int64
	name    []byte // file of the last of these
	context int64
	counts  int64 // number of lines of grep -c
	zeros   int64 // number of these that count 0 matches
	paths   int64
	files   digest.FileCounts // files of the lines "file:12: …"
	counted digest.FileCounts // files of grep -c, each as often as it has matches
	dirs    digest.FileCounts // directories of the path lines
	headed  headings
	inside  bool // the previous line is not empty
	others  strays
	placed  strays // the lines "file:12: …"
}

// strays are lines of another form than the others: what a tool wrote beside its list.
type strays struct {
	n      int64
	errors []quoted // the first ones that report an error
	lines  []quoted // the other first ones
}

// program matches the beginning of a message that names its program, "find: '/root': Permission denied", and the word
// by which a shell says that a signal ended one.
var program = content.Pattern(`^[\w.+-]+(?:\[\d+\])?: \S|^(?:Killed|Terminated|Aborted)$`)

func (s *strays) add(line []byte, at int64) {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = content.WithoutEscapes(nil, line)
	}
	list := &s.lines
	if levelOf(line, false) >= failure || program().Match(line) {
		list = &s.errors
	} else if bytes.IndexByte(line, ' ') < 0 {
		return // README.md among paths
	}
	s.n++
	if len(*list) < rareShown {
		q := quoted{}
		q.set(at, line)
		*list = append(*list, q)
	}
}

// summarize adds the lines, errors first, and how many there are.
func (s *strays) summarize(to *digest.Summary) {
	if s.n == 0 {
		return
	}
	last := &to.Total[len(to.Total)-1]
	*last += ", " + content.Plural(s.n, "other line", "other lines")
	all := append(s.errors, s.lines...)
	for _, q := range all[:min(len(all), rareShown)] {
		to.Says = append(to.Says, to.AddQuote("stands out, line "+digest.Number(q.line), q.line,
			content.Clip(string(bytes.TrimSpace(q.text)), digest.LineRunes), ""))
	}
}

// headings counts the lines of rg --heading.
type headings struct {
	name    []byte // the file of the current lines; empty if there is none
	n       int64
	found   int64
	context int64
	files   digest.FileCounts
}

// add counts a line, which has the number at. Empty lines and "--" (between groups of grep's context) are ignored.
func (l *listing) add(line []byte, at int64) {
	if len(line) == 0 {
		l.inside = false
		return
	}
	if string(line) == "--" {
		return
	}
	first := !l.inside
	l.inside = true
	l.lines++
	if l.done() {
		return
	}
	found := l.found
	switch known := l.classify(line, first); {
	case !known:
		l.others.add(line, at)
		return
	case l.found > found:
		l.placed.add(line, at)
	}
	l.known++
}

// done reports whether the text is not a listing: over a quarter of more than 100 lines name no file.
func (l *listing) done() bool { return l.lines > 100 && 4*l.known < 3*l.lines }

// classify counts a line in the forms that it has, and reports whether there is one. first is true for the first line
// after an empty one.
func (l *listing) classify(line []byte, first bool) bool {
	if first {
		l.headed.name = l.headed.name[:0]
	}
	if l.headed.add(line) {
		return true
	}
	if n := place(line); n > 0 {
		l.found++
		l.files.AddName(1, line[:n], -1)
		l.files.End()
		l.name = append(l.name[:0], line[:n]...)
		return true
	}
	if n, matches := fileCount(line); n > 0 {
		l.counts++
		if matches == 0 {
			l.zeros++
			return true
		}
		l.counted.AddName(1, line[:n], -1)
		l.counted.EndTimes(matches)
		return true
	}
	if l.isContext(line) {
		l.context++
		return true
	}
	if len(line) >= 1024 || bytes.IndexByte(line, ' ') >= 0 {
		return false
	}
	heading := first && (bytes.IndexByte(line, '/') >= 0 || bytes.IndexByte(line, '.') >= 0)
	if heading {
		l.headed.n++
		l.headed.name = append(l.headed.name, line...)
	}
	i := bytes.LastIndexByte(line, '/')
	if i >= 0 && bytes.IndexByte(line, '=') < 0 && !bytes.Contains(line, []byte("://")) {
		l.paths++
		l.dirs.AddName(1, line[:max(i, 1)], -1)
		l.dirs.End()
		return true
	}
	return heading
}

// add counts a line below a heading.
func (h *headings) add(line []byte) bool {
	at := digitsEnd(line, 0)
	if len(h.name) == 0 || at == 0 || at == len(line) {
		return false
	}
	switch line[at] {
	case ':':
		h.found++
		h.files.AddName(1, h.name, -1)
		h.files.End()
		return true
	case '-':
		h.context++
		return true
	}
	return false
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

// isContext reports whether a line begins with "name-12-", where the name has an extension or is that of the last
// match.
func (l *listing) isContext(line []byte) bool {
	line = line[:min(len(line), 512)]
	if i := bytes.IndexByte(line, ' '); i >= 0 {
		line = line[:i]
	}
	for i, c := range line {
		if c != '-' || bytes.IndexByte(line[bytes.LastIndexByte(line[:i], '/')+1:i], '.') <= 0 &&
			(i == 0 || string(line[:i]) != string(l.name)) {
			continue
		}
		if at := digitsEnd(line, i+1); at > i+1 && at < len(line) && line[at] == '-' {
			return true
		}
	}
	return false
}

// fileCount returns the length of the file name in "name:12", and the number; 0 if the line has another form. A name
// without a slash needs the extension of a text file, because host names have ports.
func fileCount(line []byte) (name int, matches int64) {
	if len(line) > 512 {
		return 0, 0
	}
	i := bytes.LastIndexByte(line, ':')
	if i <= 0 || digitsEnd(line, i+1) != len(line) || bytes.IndexByte(line[:i], ' ') >= 0 ||
		bytes.Contains(line[:i], []byte("://")) {
		return 0, 0
	}
	if file := string(line[:i]); bytes.IndexByte(line[:i], '/') < 0 && !content.IsSource(file) {
		switch path.Ext(file) {
		case ".txt", ".log", ".md", ".json", ".csv", ".xml", ".html", ".yaml", ".yml":
		default:
			return 0, 0
		}
	}
	matches, err := strconv.ParseInt(string(line[i+1:]), 10, 64)
	if err != nil || matches > 1e9 {
		return 0, 0
	}
	return i, matches
}

// is reports whether at least 90 % of the lines have one form.
func (l *listing) is() bool {
	if l.lines < 5 {
		return false
	}
	return l.isHeaded() || l.most(l.found+l.context) && l.found > 0 || l.most(l.counts) || l.most(l.paths)
}

func (l *listing) most(n int64) bool { return 10*n >= 9*l.lines }

func (l *listing) isHeaded() bool {
	h := &l.headed
	return h.found >= h.n && h.n > 0 && l.most(h.n+h.found+h.context)
}

// summarize adds the totals to the summary, "300 matches in 12 files" or "300 paths in 12 directories", and the
// files or directories with most lines.
func (l *listing) summarize(s *digest.Summary) {
	switch {
	case l.isHeaded():
		h := &l.headed
		addMatches(s, &h.files, h.found, ", below their file's name"+contextLines(h.context))
	case l.most(l.found + l.context):
		addMatches(s, &l.files, l.found, contextLines(l.context))
	case l.most(l.counts) && l.counted.Distinct() >= 0 && l.counted.Distinct() < l.counts-l.zeros:
		// A file occurs twice: the numbers are those of lines.
		s.Total = append(s.Total, content.Plural(l.counts, "place", "places")+" in "+
			content.Plural(l.counted.Distinct(), "file", "files"))
	case l.most(l.counts):
		total := content.Plural(l.counted.Elements, "match", "matches") + " in " + digest.Number(l.counts-l.zeros)
		if l.zeros > 0 {
			total += " of " + digest.Number(l.counts)
		}
		s.Total = append(s.Total, total+" files, a count per file")
		addTop(s, &l.counted)
	default:
		total := content.Plural(l.paths, "path", "paths")
		if d := l.dirs.Distinct(); d >= 0 {
			total += " in " + content.Plural(d, "directory", "directories")
		}
		s.Total = append(s.Total, total)
		l.placed.summarize(s)
		addTop(s, &l.dirs)
	}
	l.others.summarize(s)
}

func contextLines(n int64) string {
	if n == 0 {
		return ""
	}
	return ", " + content.Plural(n, "line", "lines") + " of context"
}

// addMatches adds the number of matches and of their files, and then the text more.
func addMatches(s *digest.Summary, files *digest.FileCounts, n int64, more string) {
	total := content.Plural(n, "match", "matches")
	if d := files.Distinct(); d >= 0 {
		total += " in " + content.Plural(d, "file", "files")
	}
	s.Total = append(s.Total, total+more)
	addTop(s, files)
}

func addTop(s *digest.Summary, files *digest.FileCounts) {
	if top := files.TopLine(); top != "" {
		s.Body = append(s.Body, top)
	}
}
