// Package logs summarises logs and plain text: levels, panics, line patterns, listings, titles.
//
// The package reads a text once, in bounded memory.
package logs

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	templatesShown = 12
	errorsShown    = 5
	rareShown      = 4
	rareLines      = 100 // minimum number of lines before any line counts as rare
)

// Every line in the first patternsWhole bytes of a text is matched against patterns. After that, only errors and
// samples are matched: in every windowEvery bytes, the lines that end in one window of windowSize bytes. Levels,
// panics and errors are counted in the whole text, with their line numbers; sampled pattern counts are reported as
// "about".
const (
	patternsWhole = 32 << 20
	windowEvery   = 1 << 20
	windowSize    = 64 << 10
)

// logs summarises a log: levels, times, panics, errors, and the patterns of the lines.
type logs struct {
	rows      digest.LineSplitter
	templates *templates
	panics    panics
	levels    [levels]int64
	status    [6]int64 // number of access log lines by the first digit of the HTTP status
	plain     []byte   // the current line without terminal escape sequences
	has       marks    // marks of the current block
	named     bool     // the file name says that the text is source code
	prose     bool     // no line begins with the name of a service
	source    bool     // the current lines are source code, which quotes program output

	read         int64 // number of bytes up to the end of the current line
	whole        int64 // number of bytes matched completely: [patternsWhole]
	wholeEnd     int64 // number of the last line that ends within these bytes
	beyond       int64 // number of lines after these bytes that are not errors, including the sampled ones
	sampledLines int64 // number of sampled lines
	sampledBytes int64 // number of bytes in sampled lines

	layout layout
	piece  []byte                 // the current block, at most lookBytes
	ends   [lookBytes / 64]uint64 // bit set of the newlines in the block
	mapped bool                   // ends is computed
	// accepted is the previous line if [logs.acceptSimilar] accepted it, else nil. It points into the current block.
	accepted []byte
	parsed   parsed
	entry    entry // of the current line
	tests    testErrors

	from     string // time of the first line that has a time, as written
	last     []byte // time in the last line that has a time
	stamped  int64
	firstBad quoted
	lastBad  quoted
	bad      int64
	quote    []byte
}

// quoted is a line shown in the summary.
type quoted struct {
	line int64
	text string
}

func New(name string) *logs {
	source := content.IsSource(name)
	l := &logs{templates: newTemplates(), named: source, source: source, whole: patternsWhole}
	l.rows.Visit, l.rows.Skip = l.line, l.ahead
	return l
}

func (l *logs) Add(p []byte) {
	for len(p) > 0 {
		n := min(len(p), lookBytes)
		if i := bytes.LastIndexByte(p[:n], '\n'); n < len(p) && i >= 0 {
			n = i + 1
		}
		l.piece, l.mapped = p[:n], false
		l.has.look(l.piece)
		l.rows.Write(l.piece)
		l.recordAccepted()
		p = p[n:]
	}
}

// lookBytes is the maximum size in bytes of the blocks that are searched for marks. If one line of a block has a mark,
// all lines of the block are parsed.
const lookBytes = 32 << 10

// ahead skips the leading lines of p that [logs.acceptAlike] or [logs.acceptSimilar] accepts and returns their length
// in bytes. p is a suffix of the current block.
func (l *logs) ahead(p []byte) (n int) {
	start := len(l.piece) - len(p)
	n = l.acceptAlike(p)
	if l.has != (marks{}) || l.source || l.panics.open != nil || l.layout.rest == 0 || n == len(p) {
		return n
	}
	if !l.mapped {
		runes.Newlines(l.piece, l.ends[:])
		l.mapped = true
	}
	from := start + n
	k, words := from/64, l.ends[:(len(l.piece)+63)/64]
	for word := words[k] &^ (1<<(from%64) - 1); ; word = words[k] {
		for ; word != 0; word &= word - 1 {
			end := k*64 + bits.TrailingZeros64(word)
			if !l.acceptSimilar(l.piece[from:end]) {
				return from - start
			}
			from = end + 1
		}
		if k++; k == len(words) {
			return from - start
		}
	}
}

// marks returns the marks that the current line may have: those of the current block, or all if the line began in an
// earlier block.
func (l *logs) marks() marks {
	if l.rows.InPlace {
		return l.has
	}
	return allMarks
}

func (l *logs) line(line []byte, size int64) {
	at := l.rows.Number
	l.read += size + 1
	may := l.marks()
	l.recordAccepted()
	l.parsed.size = 0
	if l.isSource(line) {
		return
	}
	if may.escape && bytes.IndexByte(line, 0x1b) >= 0 {
		l.plain = content.WithoutEscapes(l.plain[:0], line)
		line = l.plain
		may = allMarks // removing colours may have joined the parts of a word
	}
	e := &l.entry
	e.parse(line, !l.prose)
	from, to, rest := e.from, e.to, e.rest
	b := line[rest:]
	if to > 0 {
		l.stamped++
		if l.from == "" {
			l.from = string(line[from:to])
		}
		l.last = append(l.last[:0], line[from:to]...)
		if !e.byDigits() {
			l.layout.learn(line, from, to, rest)
		}
	}
	if to == 0 {
		l.testLine(line, at)
	}
	if l.panics.add(b, at, to > 0, may) {
		if to == 0 {
			return
		}
		b = nil // count the level, but no pattern
	}
	lv := noLevel
	switch {
	case e.form == access:
		if code := status(b); code > 0 {
			l.status[code/100]++
			if code >= 500 {
				lv = failure
			}
		}
	case e.level != noLevel:
		lv = e.level
	default:
		lv = levelOf(line[rest:], to > 0)
	}
	if lv >= failure && to == 0 {
		lv = l.tests.level(line, lv, at)
	}
	if e.form != access {
		l.levels[lv]++
	}
	if lv >= failure {
		l.addBad(1, at, line)
	}
	if len(b) == 0 || to == 0 && (b[0] == ' ' || b[0] == '\t') {
		return // continues the previous line
	}
	l.pattern(b, at, lv, 0, 0)
	// Lines that begin with "-" or "=" are always parsed: a listing ignores the line "--", and tests are named by them.
	if e.form != access && !e.byDigits() && l.tests.current == "" && size <= digest.LineBytes && may == (marks{}) &&
		line[0] != '-' && line[0] != '=' {
		l.parsed = parsed{int(size) + 1, from, to, rest, lv}
	}
}

// addBad counts n lines of errors, of which line is the last one and has the given number.
func (l *logs) addBad(n, at int64, line []byte) {
	if l.firstBad.line == 0 || at < l.firstBad.line {
		l.firstBad = quoted{at, string(line[:min(len(line), digest.HeadBytes)])}
	}
	if l.bad += n; at > l.lastBad.line {
		l.lastBad.line = at
		l.quote = append(l.quote[:0], line[:min(len(line), digest.HeadBytes)]...)
	}
}

// pattern matches a line against the patterns, unless sampling skips the line. It returns how many of the next lines it
// counted too: at most more lines of size bytes each, which follow the same pattern.
func (l *logs) pattern(b []byte, at int64, lv level, size, more int64) int64 {
	if l.read <= l.whole {
		if more > 0 {
			more = min(more, (l.whole-l.read)/size)
		}
		more = l.templates.again(l.templates.add(b, at, lv), more)
		l.wholeEnd = at + more
		return more
	}
	if lv >= failure || l.templates.stopped {
		return l.templates.again(l.templates.add(b, at, lv), more)
	}
	// The position of the window varies pseudo-randomly between the blocks of windowEvery bytes, because the output
	// of a program may be periodic.
	place := uint64(l.read/windowEvery) * 0x9E3779B97F4A7C15 >> 60
	if more > 0 {
		more = min(more, (windowSize-1-l.read%windowSize)/size)
	}
	if uint64(l.read%windowEvery/windowSize) == place {
		found := l.templates.add(b, at, lv)
		more = l.templates.again(found, more)
		found.sampled += 1 + more
		l.sampledLines += 1 + more
		l.sampledBytes += (1 + more) * int64(len(b))
	}
	l.beyond += 1 + more
	return more
}

// end ends the text and extrapolates the counts of sampled patterns.
func (l *logs) end() {
	l.rows.Close()
	l.recordAccepted()
	for name := range l.tests.held {
		l.endTest(name, true) // it has no result
	}
	if l.sampledLines > 0 && !l.templates.stopped {
		l.templates.estimate(float64(l.beyond) / float64(l.sampledLines))
	}
}

// samples returns a note on how much text a pattern count is based on; "" if the count covers the whole text.
func (l *logs) samples(t *template) string {
	if t.sampled == 0 {
		return ""
	}
	return "; from samples of " + digest.Number((l.whole+l.sampledBytes)>>20) + " MiB"
}

// acceptSimilar accepts a line that begins like the previous parsed line and has one of the commonest levels, as most
// lines of most logs do. In a block without marks, such a line is no error, begins no panic and names no file, so
// acceptSimilar only updates counters. recordAccepted stores the last accepted line.
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
	l.stamped++
	l.levels[lv]++
	l.accepted = line
	l.panics.beforeLine = l.rows.Number
	l.parsed.size = 0
	l.pattern(b, l.rows.Number, lv, 0, 0)
	return true
}

// recordAccepted stores the time and the text of the last line that acceptSimilar accepted, as line does for parsed
// lines.
func (l *logs) recordAccepted() {
	if l.accepted == nil {
		return
	}
	l.last = append(l.last[:0], l.accepted[l.layout.from:l.layout.to]...)
	b := l.accepted[l.layout.rest:]
	l.panics.before = append(l.panics.before[:0], b[:min(len(b), digest.HeadBytes)]...)
	l.accepted = nil
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
		says = append(says, s.AddQuote(lead, q.line, content.Clip(q.text, digest.LineRunes), ""))
	}
	if l.bad > 0 {
		quote("first error", l.firstBad)
	}
	if l.bad > 1 {
		quote("last error", quoted{l.lastBad.line, string(l.quote)})
	}
	for _, t := range l.errors() {
		says = append(says, t.count()+" "+content.Clip(t.pattern(), digest.LineRunes)+where(t, l.samples(t)))
	}
	says = append(says, l.rare(s)...)
	if l.from != "" && l.stamped > 1 {
		says = append(says, "time: "+l.from+", last "+string(l.last)) // in text order
	}
	return says
}

// errors returns the patterns of error lines, at most errorsShown, without those that only cover the first or last
// error.
func (l *logs) errors() []*template {
	if l.bad < 3 {
		return nil
	}
	var out []*template
	for _, t := range l.templates.common() {
		shown := t.n == 1 && (t.first == l.firstBad.line || t.first == l.lastBad.line)
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
	t := l.templates
	if t.lines < rareLines || t.stopped || t.dropped > 0 || l.beyond > 0 {
		return nil
	}
	var warned, out []string
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
	errors, noted := l.errors(), false
	var out []string
	for _, t := range l.templates.common() {
		shown := l.templates.isCommon(t) || t.level >= failure
		if shown && t.n > 1 && !t.vague() && !slices.Contains(errors, t) && len(out) < templatesShown {
			place := " (first line "
			if t.sampled > 0 && t.first > l.wholeEnd {
				place = " (seen at line "
			}
			from := ""
			if !noted {
				from = l.samples(t)
				noted = from != ""
			}
			out = append(out, t.count()+" "+content.Clip(t.pattern(), digest.LineRunes)+place+digest.Number(t.first)+from+")")
		}
	}
	return out
}
