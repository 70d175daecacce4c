// Package logs summarises logs and plain text: levels, panics, line patterns, listings, titles.
//
// The package reads a text once, in bounded memory.
package logs

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	templatesShown = 12
	errorsShown    = 5
	rareShown      = 4
	indentedShown  = 2
	rareLines      = 100 // minimum number of lines before any line counts as rare
)

// logs summarises a log: levels, times, panics, errors, and the patterns of the lines.
type logs struct {
	rows   digest.LineSplitter
	block  block
	named  bool   // the file name says that the text is source code
	prose  bool   // no line begins with the name of a service
	source bool   // the current lines are source code, which quotes program output
	read   int64  // number of bytes up to the end of the current line
	plain  []byte // the current line without terminal escape sequences
	entry  entry  // of the current line
	layout layout
	parsed parsed

	levels   [levels]int64
	status   [6]int64 // number of access log lines by the first digit of the HTTP status
	times    times
	errors   errorLines
	tests    testErrors
	numbers  numbers
	indented errorLines // lines of prose that follow another one by their indentation, and are no errors
	panics   panics
	patterns patterns
}

// quoted is a line shown in the summary.
type quoted struct {
	line int64
	text []byte // its first digest.HeadBytes
}

// set overwrites the line; it copies the text.
func (q *quoted) set(line int64, text []byte) {
	q.line, q.text = line, append(q.text[:0], text[:min(len(text), digest.HeadBytes)]...)
}

// errorLines counts the lines of errors and keeps the first and the last of them.
type errorLines struct {
	n           int64
	first, last quoted
}

// add counts n lines, of which line is the last one and has the given number.
func (e *errorLines) add(n, at int64, line []byte) {
	e.n += n
	if e.first.line == 0 || at < e.first.line {
		e.first.set(at, line)
	}
	if at > e.last.line {
		e.last.set(at, line)
	}
}

// times counts the lines that have a time and keeps the times of the first and the last of them, as written.
type times struct {
	n     int64
	first string
	last  []byte
}

// add counts n lines, the last of which has the given time.
func (t *times) add(n int64, last []byte) {
	if t.first == "" {
		t.first = string(last)
	}
	t.n += n
	t.last = append(t.last[:0], last...)
}

// New returns the summarizer of logs. The name is that of the file; "" if there is none.
func New(name string) *logs {
	source := content.IsSource(name)
	l := &logs{patterns: newPatterns(), named: source, source: source}
	l.rows.Visit, l.rows.Skip = l.line, l.ahead
	return l
}

func (l *logs) Add(p []byte) {
	for len(p) > 0 {
		n := min(len(p), blockBytes)
		if i := bytes.LastIndexByte(p[:n], '\n'); n < len(p) && i >= 0 {
			n = i + 1
		}
		l.block.set(p[:n])
		l.rows.Write(l.block.text)
		p = p[n:]
	}
}

// ahead skips the leading lines of p that [logs.acceptAlike] or [logs.acceptSimilar] accepts and returns their length
// in bytes. p is a suffix of the current block.
func (l *logs) ahead(p []byte) (n int) {
	n = l.acceptAlike(p)
	if l.block.marked || l.source || l.panics.open != nil || l.layout.rest == 0 || n == len(p) {
		return n
	}
	for end := bytes.IndexByte(p[n:], '\n'); end >= 0 && l.acceptSimilar(p[n:n+end]); end = bytes.IndexByte(p[n:], '\n') {
		n += end + 1
	}
	return n
}

func (l *logs) line(line []byte, size int64) {
	at := l.rows.Number
	l.read += size + 1
	// A line that began in an earlier block may have a mark of that one.
	marked := l.block.marked || !l.rows.InPlace
	l.parsed.size = 0
	if l.isSource(line) {
		return
	}
	if marked && bytes.IndexByte(line, 0x1b) >= 0 {
		l.plain = content.WithoutEscapes(l.plain[:0], line)
		line = l.plain
	}
	e := &l.entry
	e.parse(line, !l.prose)
	timed, text := e.to > 0, line[e.rest:]
	if timed {
		l.times.add(1, line[e.from:e.to])
		if !e.byDigits() {
			l.layout.learn(line, e.from, e.to, e.rest)
		}
	} else {
		l.testLine(line, at)
	}
	if l.panics.add(text, at, timed, marked) {
		if timed {
			l.countLevel(line, nil, at)
		}
		return
	}
	lv := l.countLevel(line, text, at)
	if len(text) == 0 || !timed && (text[0] == ' ' || text[0] == '\t') && lv < failure {
		if l.prose && len(text) > 0 {
			l.indented.add(1, at, line)
		}
		return // continues the previous line
	}
	l.patterns.match(text, at, lv, l.read)
	// Lines that begin with "-" or "=" are always parsed: a listing ignores the line "--", and tests are named by them.
	if e.form != access && !e.byDigits() && l.tests.current == "" && size <= digest.LineBytes && !marked &&
		line[0] != '-' && line[0] != '=' {
		l.parsed = parsed{int(size) + 1, e.from, e.to, e.rest, lv}
	}
}

// countLevel counts the level of the current line, or its HTTP status in an access log, and returns the level. text is
// what follows the time, nil for a line of a panic.
func (l *logs) countLevel(line, text []byte, at int64) level {
	e := &l.entry
	lv := e.level
	switch {
	case e.form == access:
		lv = l.countStatus(text)
	case lv == noLevel:
		if lv = levelOf(line[e.rest:], e.to > 0); lv == noLevel {
			lv = l.numbers.level(line[e.rest:], e.to > 0)
		}
	}
	if lv >= failure && e.to == 0 {
		lv = l.tests.level(line, lv, at)
	}
	if e.form != access {
		l.levels[lv]++
	}
	if lv >= failure {
		l.errors.add(1, at, line)
	}
	return lv
}

// countStatus counts the HTTP status of a line of an access log; 500 and above are failures.
func (l *logs) countStatus(text []byte) level {
	code := status(text)
	if code == 0 {
		return noLevel
	}
	l.status[code/100]++
	if code < 500 {
		return noLevel
	}
	return failure
}

// end ends the text.
func (l *logs) end() {
	l.rows.Close()
	for name := range l.tests.held {
		l.endTest(name, true) // it has no result
	}
	l.patterns.end()
}

// acceptSimilar accepts a line that begins like the previous parsed line and has one of the commonest levels, as most
// lines of most logs do. In a block without marks, such a line is no error, begins no panic and names no file, so
// acceptSimilar only updates counters.
func (l *logs) acceptSimilar(line []byte) bool {
	if len(line) == 0 || len(line) > digest.LineBytes || line[len(line)-1] == '\r' || !l.layout.fits(line) {
		return false
	}
	b := line[l.layout.rest:]
	lv := commonLevel(b)
	if lv == noLevel {
		return false
	}
	l.rows.Number++
	l.read += int64(len(line)) + 1
	l.times.add(1, line[l.layout.from:l.layout.to])
	l.levels[lv]++
	l.panics.setPrevious(l.rows.Number, b)
	l.parsed.size = 0
	l.patterns.match(b, l.rows.Number, lv, l.read)
	return true
}

// isSource reports whether a line is source code, or is a header that names the next of several files.
func (l *logs) isSource(line []byte) bool {
	if !l.named && len(line) > 0 && line[0] == '=' {
		if name, ok := content.FileHeader(line); ok {
			l.source = content.IsSource(name)
			l.panics.interrupt()
			return true
		}
	}
	return l.source
}

func (l *logs) Finish(s *digest.Summary) {
	l.end()
	s.Total = append(s.Total, l.total()...)
	s.Says = l.says(s)
	s.Body = l.body()
}

// total returns the counts by level and by HTTP status: "98000 info, 1900 warn, 100 error".
func (l *logs) total() []string {
	var parts []string
	out := l.panics.total()
	for lv := levels - 1; lv > noLevel; lv-- {
		if l.levels[lv] > 0 {
			parts = append(parts, digest.Number(l.levels[lv])+" "+levelNames[lv])
		}
	}
	for i, n := range l.status {
		if n > 0 {
			parts = append(parts, digest.Number(n)+" status "+string(rune('0'+i))+"xx")
		}
	}
	if len(parts) > 0 {
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}

// says returns the findings: panics, the first and last error, the commonest error patterns, rare lines, the time
// range.
func (l *logs) says(s *digest.Summary) []string {
	says := l.panics.lines(s)
	quote := func(name string, q quoted) {
		lead := name + ", line " + digest.Number(q.line)
		says = append(says, s.AddQuote(lead, q.line, content.Clip(string(q.text), digest.LineRunes), ""))
	}
	if l.errors.n > 0 {
		quote("first error", l.errors.first)
	}
	if l.errors.n > 1 {
		quote("last error", l.errors.last)
	}
	for _, t := range l.errorPatterns() {
		says = append(says, t.count()+" "+content.Clip(t.pattern(), digest.LineRunes)+where(t, l.patterns.samples(t)))
	}
	says = append(says, l.rare(s)...)
	if l.times.n > 1 {
		says = append(says, "time: "+l.times.first+", last "+string(l.times.last)) // in text order
	}
	return says
}

// errorPatterns returns the patterns of error lines, at most errorsShown, without those that only cover the first or
// last error.
func (l *logs) errorPatterns() []*template {
	if l.errors.n < 3 {
		return nil
	}
	var out []*template
	for _, t := range l.patterns.common() {
		shown := t.n == 1 && (t.first == l.errors.first.line || t.first == l.errors.last.line)
		if t.level >= failure && !shown && len(out) < errorsShown {
			out = append(out, t)
		}
	}
	return out
}

func where(t *template, samples string) string {
	if samples != "" {
		return " (seen at lines " + digest.Number(t.first) + " … " + digest.Number(t.last) + samples + ")"
	}
	if t.n == 1 {
		return " (line " + digest.Number(t.first) + ")"
	}
	return " (lines " + digest.Number(t.first) + " … " + digest.Number(t.last) + ")"
}

// rare returns unusual lines of a text in which most lines follow common patterns, warnings first. It returns none
// if lines were sampled or templates dropped, because rarity is unknown then.
func (l *logs) rare(s *digest.Summary) []string {
	t := l.patterns
	if t.lines < rareLines || t.stopped || t.dropped > 0 || t.beyond > 0 {
		return nil
	}
	var warned, out []string
	if n := l.indented.n; n > 0 && n <= indentedShown {
		for _, q := range []quoted{l.indented.first, l.indented.last}[:n] {
			out = append(out, s.AddQuote("stands out, line "+digest.Number(q.line), q.line,
				content.Clip(string(bytes.TrimSpace(q.text)), digest.LineRunes), ""))
		}
	}
	for _, c := range t.all {
		if c.n*500 > t.lines && c.n > 1 || c.n > 3 || c.level >= failure {
			if c.level < failure {
				out = append(out, oddLines(s, c)...)
			}
			continue
		}
		line := ""
		if c.n == 1 {
			line = s.AddQuote("stands out, line "+digest.Number(c.first), c.first, content.Clip(c.text, digest.LineRunes), "")
		} else {
			line = "stands out, lines " + digest.Number(c.first) + " … " + digest.Number(c.last) + " (" + digest.Number(c.n) +
				"×): " + content.Clip(c.text, digest.LineRunes)
		}
		if c.level == warn {
			warned = append(warned, line)
		} else {
			out = append(out, line)
		}
	}
	out = append(warned, out...)
	if len(out) > 3*rareShown {
		return nil // so many rare lines are not unusual here
	}
	return out[:min(len(out), rareShown)]
}

// oddLines returns the lines that follow a pattern but for words that nearly all others have.
func oddLines(s *digest.Summary, c *template) (out []string) {
	for _, v := range c.odd() {
		more := ""
		if v.n > 1 {
			more = " (" + digest.Number(v.n-1) + " more like it)"
		}
		lead := "stands out, line " + digest.Number(v.first)
		out = append(out, s.AddQuote(lead, v.first, content.Clip(v.text, digest.LineRunes), more))
	}
	return out
}

// body returns the commonest patterns: those that 2 % of the lines have, and those of errors.
func (l *logs) body() []string {
	errors, noted := l.errorPatterns(), false
	var out []string
	for _, t := range l.patterns.common() {
		shown := l.patterns.isCommon(t) || t.level >= failure
		if shown && t.n > 1 && !t.vague() && !slices.Contains(errors, t) && len(out) < templatesShown {
			place := " (first line "
			if t.sampled > 0 && t.first > l.patterns.wholeEnd {
				place = " (seen at line "
			}
			from := ""
			if !noted {
				from = l.patterns.samples(t)
				noted = from != ""
			}
			out = append(out, t.count()+" "+content.Clip(t.pattern(), digest.LineRunes)+place+digest.Number(t.first)+from+")")
		}
	}
	return out
}
