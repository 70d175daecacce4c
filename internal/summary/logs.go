package summary

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/runes"
)

const (
	templatesShown = 12
	errorsShown    = 5
	rareShown      = 4
	rareLines      = 200 // in a log of fewer lines nothing is rare
)

// Of the first patternsWhole bytes of a text each line is looked at for its pattern. Of what is above it each error is, and of
// each windowEvery bytes the other lines that end in one stretch of windowSize. Levels, panics and errors are counted in all of it, and
// their places told; how often a pattern stands there is "about".
const (
	patternsWhole = 32 << 20
	windowEvery   = 1 << 20
	windowSize    = 64 << 10
)

// logs summarises a log: its levels, its time, panics, errors, and the patterns of its lines.
type logs struct {
	rows      rows
	templates *templates
	panics    panics
	levels    [levels]int64
	status    [6]int64 // answers of an access log, by hundreds
	plain     []byte   // a line without its escape sequences
	has       marks    // of the piece being written
	named     bool     // the text is a file's of source
	source    bool     // what is being read is source: it quotes what programs print

	read   int64 // bytes, up to the end of the line being visited
	whole  int64 // [patternsWhole] …
	sure   int64 // … and the last line that ends in it
	thin   int64 // lines above it that were not looked at, but for some:
	taken  int64 // these
	looked int64 // bytes of them

	layout layout
	piece  []byte                 // being written, at most lookBytes
	ends   [lookBytes / 64]uint64 // where its newlines are …
	mapped bool                   // … once they were looked for
	passed []byte                 // the line before, where it was [logs.alike]: a part of the piece being written

	from     string // time of the first line that has one
	last     []byte // of the last
	stamped  int64
	firstBad quoted
	lastBad  quoted
	bad      int64
	quote    []byte
}

// quoted is a line that is shown.
type quoted struct {
	line int64
	text string
}

func newLog(name string) *logs {
	source := content.IsSource(name)
	l := &logs{templates: newTemplates(), named: source, source: source, whole: patternsWhole}
	l.rows.visit, l.rows.ahead = l.line, l.ahead
	return l
}

func (l *logs) write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), lookBytes)
		if i := bytes.LastIndexByte(p[:n], '\n'); n < len(p) && i >= 0 {
			n = i + 1
		}
		l.piece, l.mapped = p[:n], false
		l.has.look(l.piece)
		l.rows.write(l.piece)
		l.settle()
		p = p[n:]
	}
}

// lookBytes is how much is looked through at once for what few lines have: one line that has it lets all of them be parsed.
const lookBytes = 32 << 10

// ahead passes over the lines at the beginning of p, which is the end of the piece, that are alike: how many bytes they are.
func (l *logs) ahead(p []byte) (n int) {
	if l.has != (marks{}) || l.source || l.panics.open != nil || l.layout.rest == 0 {
		return 0
	}
	if !l.mapped {
		runes.Newlines(l.piece, l.ends[:])
		l.mapped = true
	}
	from := len(l.piece) - len(p)
	start, k, words := from, from/64, l.ends[:(len(l.piece)+63)/64]
	for word := words[k] &^ (1<<(from%64) - 1); ; word = words[k] {
		for ; word != 0; word &= word - 1 {
			end := k*64 + bits.TrailingZeros64(word)
			if !l.alike(l.piece[from:end]) {
				return from - start
			}
			from = end + 1
		}
		if k++; k == len(words) {
			return from - start
		}
	}
}

// marks are those the line being visited may have: all, where some of it came before this piece.
func (l *logs) marks() marks {
	if l.rows.inside {
		return l.has
	}
	return allMarks
}

func (l *logs) line(line []byte, size int64) {
	at := l.rows.number
	l.read += size + 1
	may := l.marks()
	l.settle()
	if l.quotes(line) {
		return
	}
	if may.escape && bytes.IndexByte(line, 0x1b) >= 0 {
		l.plain = withoutEscapes(l.plain[:0], line)
		line = l.plain
		may = allMarks // a word that was coloured in part is whole now
	}
	from, to, rest := stamp(line)
	b := line[rest:]
	access := false
	if to == 0 {
		if from, to = midStamp(line); to > 0 {
			access = true
		}
	}
	if to > 0 {
		l.stamped++
		if l.from == "" {
			l.from = string(line[from:to])
		}
		l.last = append(l.last[:0], line[from:to]...)
		l.layout.learn(line, from, to, rest)
	}
	if l.panics.add(b, at, to > 0, may) {
		if to == 0 {
			return
		}
		b = nil // counted by its level, but no pattern
	}
	lv := noLevel
	switch {
	case access:
		if code := status(b); code > 0 {
			l.status[code/100]++
			if code >= 500 {
				lv = failure
			}
		}
	case to > 0 && rest == 0: // glog
		lv = map[byte]level{'I': info, 'W': warn, 'E': failure, 'F': fatal}[line[0]]
	default:
		lv = levelOf(line[rest:], to > 0)
	}
	if !access {
		l.levels[lv]++
	}
	if lv >= failure {
		l.bad++
		l.lastBad.line = at
		l.quote = append(l.quote[:0], line[:min(len(line), headBytes)]...)
		if l.bad == 1 {
			l.firstBad = quoted{at, string(l.quote)}
		}
	}
	if len(b) == 0 || to == 0 && (b[0] == ' ' || b[0] == '\t') {
		return // goes on from the line before
	}
	l.pattern(b, at, lv)
}

// pattern looks at a line for its pattern, where it is not one of many that are passed over.
func (l *logs) pattern(b []byte, at int64, lv level) {
	if l.read <= l.whole {
		l.sure = at
	}
	if l.read <= l.whole || lv >= failure || l.templates.stopped {
		l.templates.add(b, at, lv)
		return
	}
	l.thin++
	// Where in a stretch the window stands changes from one to the next as if by chance: what a program does may have a rhythm.
	place := uint64(l.read/windowEvery) * 0x9E3779B97F4A7C15 >> 60
	if uint64(l.read%windowEvery/windowSize) != place {
		return
	}
	l.taken++
	l.looked += int64(len(b))
	l.templates.add(b, at, lv).thin++
}

// end ends the reading: what was passed over is estimated.
func (l *logs) end() {
	l.rows.close()
	l.settle()
	if l.taken > 0 && !l.templates.stopped {
		l.templates.estimate(float64(l.thin) / float64(l.taken))
	}
}

// samples says, behind a count of a pattern, what it is from; "" where it is from all of the text.
func (l *logs) samples(t *template) string {
	if t.thin == 0 {
		return ""
	}
	return "; from samples of " + number((l.whole+l.looked)>>20) + " MiB"
}

// alike takes a line that begins as one before it did and then has one of the commonest levels, which is most lines of most logs: it
// is no error, begins no panic and names no file, and what it says was parsed already. The piece has no marks. It looks at
// little of the line, and notes only that it was there: settle does the rest for the last of them.
func (l *logs) alike(line []byte) bool {
	if len(line) == 0 || len(line) > lineBytes || line[len(line)-1] == '\r' || !l.layout.fits(line) {
		return false
	}
	b := line[l.layout.rest:]
	lv := commonLevel(b)
	if lv == noLevel {
		return false
	}
	l.rows.number++
	l.read += int64(len(line)) + 1
	l.stamped++
	l.levels[lv]++
	l.passed = line
	l.panics.beforeLine = l.rows.number
	l.pattern(b, l.rows.number, lv)
	return true
}

// settle remembers the last line that was alike, as a line that was parsed is.
func (l *logs) settle() {
	if l.passed == nil {
		return
	}
	l.last = append(l.last[:0], l.passed[l.layout.from:l.layout.to]...)
	b := l.passed[l.layout.rest:]
	l.panics.before = append(l.panics.before[:0], b[:min(len(b), headBytes)]...)
	l.passed = nil
}

// quotes says whether a line belongs to source, or names the next of several files.
func (l *logs) quotes(line []byte) bool {
	if !l.named && len(line) > 0 && line[0] == '=' {
		if name, ok := content.FileHeader(line); ok {
			l.source = content.IsSource(name)
			l.panics.interrupt()
			return true
		}
	}
	return l.source
}

// withoutEscapes leaves out terminal sequences: colours stand before levels.
func withoutEscapes(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != 0x1b {
			dst = append(dst, b[i])
			continue
		}
		if i+1 < len(b) && b[i+1] == '[' {
			for i += 2; i < len(b) && (b[i] < '@' || b[i] > '~'); i++ {
			}
		}
	}
	return dst
}

func (l *logs) close(s *Summary) {
	l.end()
	s.Total = append(s.Total, l.total()...)
	s.Says = l.says(s)
	s.Body = l.body()
}

// total is "98000 info, 1900 warn, 100 error".
func (l *logs) total() []string {
	var parts []string
	out := l.panics.total()
	for lv := levels - 1; lv > noLevel; lv-- {
		if l.levels[lv] > 0 {
			parts = append(parts, number(l.levels[lv])+" "+levelNames[lv])
		}
	}
	for i, n := range l.status {
		if n > 0 {
			parts = append(parts, number(n)+" status "+string(rune('0'+i))+"xx")
		}
	}
	if len(parts) > 0 {
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}

// says puts panics first, then what went wrong most, the first and last error, lines unlike all others, the time.
func (l *logs) says(s *Summary) []string {
	says := l.panics.lines(s)
	l.lastBad.text = string(l.quote)
	if l.bad > 0 {
		says = append(says, s.quote("first error, line "+number(l.firstBad.line), l.firstBad.line, content.Clip(l.firstBad.text, lineRunes), ""))
	}
	if l.bad > 1 {
		says = append(says, s.quote("last error, line "+number(l.lastBad.line), l.lastBad.line, content.Clip(l.lastBad.text, lineRunes), ""))
	}
	for _, t := range l.errors() {
		says = append(says, t.count()+" "+content.Clip(t.pattern(), lineRunes)+where(t, l.samples(t)))
	}
	says = append(says, l.rare(s)...)
	if l.from != "" && l.stamped > 1 {
		says = append(says, "time: "+l.from+", last "+string(l.last)) // as they stand: lines need not be in order
	}
	return says
}

// errors are the patterns of lines that are errors, where they say more than the first and last of them.
func (l *logs) errors() []*template {
	if l.bad < 3 {
		return nil
	}
	var out []*template
	for _, t := range l.templates.common() {
		told := t.n == 1 && (t.first == l.firstBad.line || t.first == l.lastBad.line)
		if t.level >= failure && !told && len(out) < errorsShown {
			out = append(out, t)
		}
	}
	return out
}

func where(t *template, samples string) string {
	if samples != "" {
		return " (seen at lines " + number(t.first) + " … " + number(t.last) + samples + ")"
	}
	if t.n == 1 {
		return " (line " + number(t.first) + ")"
	}
	return " (lines " + number(t.first) + " … " + number(t.last) + ")"
}

// rare are the lines that are like few others, where most lines are like many others. Warnings go first. Of a text of which not all
// was looked at nobody knows them.
func (l *logs) rare(s *Summary) []string {
	t := l.templates
	if t.lines < rareLines || t.stopped || t.gone > 0 || l.thin > 0 {
		return nil
	}
	var warned, out []string
	for _, c := range t.all {
		if c.n*500 > t.lines && c.n > 1 || c.n > 3 || c.level >= failure {
			continue
		}
		line := ""
		if c.n == 1 {
			line = s.quote("stands out, line "+number(c.first), c.first, content.Clip(c.text, lineRunes), "")
		} else {
			line = "stands out, lines " + number(c.first) + " … " + number(c.last) + " (" + number(c.n) + "×): " + content.Clip(c.text, lineRunes)
		}
		if c.level == warn {
			warned = append(warned, line)
		} else {
			out = append(out, line)
		}
	}
	out = append(warned, out...)
	if len(out) > 3*rareShown {
		return nil // then being rare is nothing special here
	}
	return out[:min(len(out), rareShown)]
}

// body are the commonest patterns.
func (l *logs) body() []string {
	if l.templates.stopped {
		return nil
	}
	told, said := l.errors(), false
	var out []string
	for _, t := range l.templates.common() {
		if t.n > 1 && !t.vague() && !slices.Contains(told, t) && len(out) < templatesShown {
			place := " (first line "
			if t.thin > 0 && t.first > l.sure {
				place = " (seen at line "
			}
			from := ""
			if !said {
				from = l.samples(t)
				said = from != ""
			}
			out = append(out, t.count()+" "+content.Clip(t.pattern(), lineRunes)+place+number(t.first)+from+")")
		}
	}
	return out
}
