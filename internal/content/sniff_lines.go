package content

import "bytes"

// isDiff looks for the header of a file with a hunk or git's own lines after it, among the
// first lines; before it a commit or a mail may stand. In Markdown a diff stands in a fence: that is no diff.
func isDiff(all [][]byte, ext string) bool {
	const before = 200
	at := -1
	for i, l := range all {
		if i > before || bytes.HasPrefix(l, []byte("```")) || bytes.HasPrefix(l, []byte("~~~")) {
			return false
		}
		_, _, hunk := hunkHeader(l, nil)
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

// gitLine is what stands between files: git's extended headers, and the headers of commits.
var gitLine = Pattern(`^(diff |index |old mode|new mode|deleted file|new file|similarity |dissimilarity |rename |copy |mode |Binary files |GIT binary|Only in |commit [0-9a-f]{7}|Author:|AuthorDate:|CommitDate:|Commit:|Date:|Merge:|From |Subject:|Index: |=====|literal |delta )`)

func fileHeader(all [][]byte) bool {
	l := all[0]
	switch {
	case bytes.HasPrefix(l, []byte("diff --git ")), bytes.HasPrefix(l, []byte("diff --cc ")), bytes.HasPrefix(l, []byte("diff --combined ")):
		return len(all) == 1 || gitLine().Match(all[1]) || bytes.HasPrefix(all[1], []byte("--- "))
	case bytes.HasPrefix(l, []byte("--- ")) && len(all) > 1 && bytes.HasPrefix(all[1], []byte("+++ ")):
		if len(all) == 2 {
			return true
		}
		_, _, ok := hunkHeader(all[2], nil)
		return ok
	}
	return false
}

var (
	// stamped is a line that begins with a time, as logs write it: ISO 8601 and its relatives, syslog, Go, klog, dmesg, Unix
	// seconds, or a time of day; perhaps in brackets, perhaps after the name of a container. What follows the time is not a delimiter of CSV.
	stamped = Pattern(`^(?:[\w.-]{1,40} +\| )?[\[(<]?(?:` +
		`(?:time=|ts=)?"?\d{4}[-/.]\d\d[-/.]\d\d(?:[T _]|:)\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?` +
		`|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)?,? ?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2}(?: \d{4})?,? \d\d:\d\d:\d\d(?:\.\d+)?(?: \d{4})?` +
		`|\d{1,2}[/ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[/ -]\d{4}[: ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: [+-]\d{4})?` +
		`|\d\d[-/]\d\d(?:[-/]\d{2,4})? \d\d:\d\d:\d\d(?:[.,]\d+)?` +
		`|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+` +
		`| *\d{1,10}\.\d{6}` +
		`|1\d{9}(?:\.\d{1,9}|\d{3})?` +
		`|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?` +
		`)(?:[\]>)"]?(?:[ \t|:]|$|\]))`)
	// request is a line of a web server's access log: an address, then a time in brackets.
	request = Pattern(`^[\w.:-]+ \S+ \S+ \[\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d`)
	// levelled is a line that begins with a level.
	levelled = Pattern(`^[\[(<]?(?i:trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|panic|severe|fine|emerg|alert)[\])>]?(?::|\b[ \t|\]-]|$)` +
		`|^<\d{1,3}>|^[VDIWEF]/[\w.-]+ *(?:\(|:)`)
)

// isLog says whether enough of the entries begin with a time or a level. One line needs both.
func isLog(all [][]byte, ext string) bool {
	const (
		sample = 200 // entries looked at
		enough = 60  // without one hit there is none to come
	)
	var c logCensus
	for _, l := range all {
		if c.entries == sample || c.entries == enough && c.times+c.levels == 0 {
			break
		}
		l = l[:min(len(l), 256)]
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		if bytes.IndexByte(l, 0x1b) >= 0 {
			l = colour().ReplaceAll(l, nil)
		}
		c.add(l)
	}
	hits := max(c.times, c.levels)
	switch {
	case c.entries == 0 || c.places*2 > c.entries:
		return false
	case c.entries == 1:
		return c.both == 1 || hits == 1 && ext == ".log"
	case ext == ".log":
		return hits*5 >= c.entries
	case !c.first && c.times == hits && looksLikeRows(all):
		return false // a table with a header, whose first column is a time
	}
	return hits >= 2 && hits*2 >= c.entries
}

// logCensus counts what tells a log from other lines.
type logCensus struct {
	entries       int // lines that belong to none before
	times, levels int // that begin with one
	both          int
	places        int  // that begin with a file and a line
	first         bool // the first has a time or level
}

func (c *logCensus) add(l []byte) {
	end := stampEnd(l)
	stamp := end > 0 || bytes.IndexByte(l, '[') > 0 && request().Match(l)
	level := mayLevel(l) && levelled().Match(l) ||
		hasLevelField(l) ||
		end > 0 && hasLevelWord(l[end-1:min(len(l), end+60)]) // close to the start
	if !stamp && !level {
		place := isFound(l)
		if !place && c.entries > 0 && isCarried(l) {
			return
		}
		if place {
			c.places++
		}
	}
	if c.entries == 0 {
		c.first = stamp || level
	}
	c.entries++
	if stamp {
		c.times++
	}
	if level {
		c.levels++
	}
	if stamp && level {
		c.both++
	}
}

// colour is how terminals are told to colour a word.
var colour = Pattern("\x1b\\[[0-9;]*m")

// looksLikeRows says whether the lines have the tabs, commas or semicolons of the first, which has some.
func looksLikeRows(all [][]byte) bool {
	d := delimiter(all[0])
	want := bytes.Count(all[0], []byte{d})
	if want == 0 {
		return false
	}
	for _, l := range all {
		if len(l) > 0 && bytes.Count(l, []byte{d}) < want {
			return false
		}
	}
	return true
}

// isTable says whether all rows have as many columns as the first: two or more. Prose with commas has not; what little of it
// has, reads unlike cells.
func isTable(p []byte, whole bool, ext string) bool {
	c := columnCensus{delimiter: delimiter(p)}
	t := rowScanner{delimiter: c.delimiter}
	named := ext == ".csv" || ext == ".tsv"
	more := t.scan(p, func(_ int64, at Span) bool {
		c.add(p[at.Start:at.End])
		return c.rows < 300 && (named || c.columns > 1 && c.same == c.rows) // else it is decided
	})
	if whole && more && t.start < int64(len(p)) { // a last row without line end
		c.add(bytes.TrimSuffix(p[t.start:], []byte{'\r'}))
	}
	switch {
	case c.rows == 0:
		return false
	case named:
		return c.same*10 >= c.rows*9
	case c.columns < 2 || c.rows < 2 || c.same < c.rows:
		return false
	case c.delimiter == ',' && c.columns == 2 && c.rows < 3:
		return false // two lines with a comma each
	case c.delimiter != '\t' && c.spaced*2 > c.cells-c.rows:
		return false // a blank after most commas: prose, or code
	}
	return c.empty*2 <= c.rows && c.nameless*2 < c.columns && c.odd*10 <= c.cells
}

// columnCensus counts what tells a table from other lines with commas.
type columnCensus struct {
	delimiter     byte
	columns       int // of the first row
	rows, same    int // same: with as many columns
	cells, spaced int // spaced: after a delimiter and a blank
	empty         int // first cells
	nameless      int // cells of the first row that are empty
	odd           int // with brackets that do not close
}

func (c *columnCensus) add(row []byte) {
	fields := splitRow(row, c.delimiter)
	if c.rows == 0 {
		c.columns = len(fields)
	}
	c.rows++
	if len(fields) == c.columns {
		c.same++
	}
	c.cells += len(fields)
	for i, f := range fields {
		if i > 0 && len(f) > 0 && f[0] == ' ' {
			c.spaced++
		}
		if len(bytes.TrimSpace(f)) == 0 {
			if i == 0 {
				c.empty++
			}
			if c.rows == 1 {
				c.nameless++
			}
		}
		if !balanced(f) {
			c.odd++
		}
	}
}

// splitRow splits a row into its fields as written.
func splitRow(row []byte, delimiter byte) [][]byte {
	var fields [][]byte
	start, quoted := 0, false
	for i, c := range row {
		switch {
		case c == '"' && delimiter != '\t':
			// A doubled quote closes and opens again.
			if quoted || i == start || row[i-1] == '"' {
				quoted = !quoted
			}
		case c == delimiter && !quoted:
			fields = append(fields, row[start:i])
			start = i + 1
		}
	}
	return append(fields, row[start:])
}

// balanced says whether the brackets in a cell close: in code that a comma splits they do not.
func balanced(cell []byte) bool {
	n := 0
	for _, c := range cell {
		switch c {
		case '(', '[', '{':
			n++
		case ')', ']', '}':
			n--
		}
	}
	return n == 0
}

var (
	heading   = Pattern(`^ {0,3}#{1,6} +\S`)
	underline = Pattern(`^(={3,}|-{3,})\s*$`)
	fence     = Pattern("^ {0,3}(```|~~~)")
	link      = Pattern(`\[[^\]\n]+\]\([^)\s]+\)`)
	ruled     = Pattern(`^\|?[ :|-]*-{3,}[ :|-]*\|[ :|-]*$`)
	bold      = Pattern(`\*\*[^*\s][^*]*\*\*|__[^_\s][^_]*__`)
	item      = Pattern(`^ {0,3}(?:[-*+]|\d{1,3}[.)]) +\S`)
	inline    = Pattern("`[^`\n]+`")
	codeStart = Pattern(`^(?:#!|//|/\*|<\?|"""|package |import |from .* import|use |using )`)
)

// isMarkdown asks for two things that Markdown has and text has not. A heading counts beside
// a blank line only, since comments of many languages begin with "# ".
func isMarkdown(all [][]byte, ext string) bool {
	switch ext {
	case ".md", ".markdown", ".mdx":
		return true
	case "", ".txt", ".text":
	default:
		return false // of another language
	}
	if first := bytes.TrimSpace(all[0]); codeStart().Match(first) {
		return false
	}
	all = all[:min(len(all), 400)]
	var headings, fences, links, rules, bolds, items, codes, underlines, filled, program int
	blank := func(i int) bool { return i < 0 || i >= len(all) || len(bytes.TrimSpace(all[i])) == 0 }
	has := func(l []byte, c byte) bool { return bytes.IndexByte(l, c) >= 0 }
	fenced := false
	for i, l := range all {
		if blank(i) {
			continue
		}
		start := bytes.TrimLeft(l, " ")[0]
		if (start == '`' || start == '~') && fence().Match(l) {
			fences++
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		filled++
		if ofProgram(l) {
			program++
		}
		switch {
		case start == '#' && heading().Match(l) && blank(i-1) && (blank(i+1) || fence().Match(all[i+1])):
			headings++
		case (start == '=' || start == '-') && underline().Match(l) && !blank(i-1) && blank(i+1) && blank(i-2):
			underlines++
		case has(l, '|') && ruled().Match(l) && i > 0 && has(all[i-1], '|'):
			rules++
		case (start < '0' || start <= '9') && item().Match(l):
			items++
		}
		if has(l, '[') && link().Match(l) {
			links++
		}
		if (has(l, '*') || has(l, '_')) && bold().Match(l) {
			bolds++
		}
		if has(l, '`') && inline().Match(l) {
			codes++
		}
	}
	if program*4 > filled {
		return false
	}
	strong := 0
	for _, n := range []int{headings, fences / 2, links, rules, bolds, underlines} {
		if n > 0 {
			strong++
		}
	}
	weak := 0
	for _, n := range []int{items / 2, codes} {
		if n > 0 {
			weak++
		}
	}
	return headings > 1 && headings*2 >= filled/8 || strong >= 2 || headings > 0 && weak > 0 || strong == 1 && weak == 2
}

// ofProgram says whether a line reads as one of a program, whatever its language.
func ofProgram(l []byte) bool {
	l = bytes.TrimSpace(l)
	switch l[len(l)-1] {
	case '{', '}', ';':
		return true
	}
	return mayState(l) && statement().Match(l[:min(len(l), 64)]) || bytes.Contains(l, []byte(" = ")) || bytes.Contains(l, []byte(" := "))
}

// mayState says no to most lines that are no statement, by two bytes: a regular expression for each is dear.
func mayState(l []byte) bool {
	return l[0] == '@' || bytes.Contains([]byte("as de cl fu im fr re if el fo wh tr ex ra"), l[:min(2, len(l))])
}

var statement = Pattern(`^(?:(?:async )?def \w|class \w+[(:]|func |import \w|from [\w.]+ import |return\b|if .*:$|el(?:se|if)\b.*:$|for .*:$|while .*:$|try:$|except\b.*:$|raise \w|@\w)`)
