package logs

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	titleRunes  = 60
	titlesKept  = 64 // maximum number of first words, and of titles held per first word
	titlesShown = 32
	probeLines  = 1000 // number of lines after which the text is checked for common patterns
)

// prose summarises plain text: the first sentences, titles, and the longest line. Program output is plain text too,
// so panics and errors are reported as for a log. Source code is not examined; if the text consists of several
// source files, prose lists the start of each file.
type prose struct {
	logs    *logs
	listing listing
	bullets digest.Bullets
	opening digest.Sentences
	pending title // title candidate; a title if the next line is blank
	blank   bool  // the previous line is blank
	titles  map[string]*titles
	order   []*titles
	longest quoted
	size    int64
	rest    rest
}

type title struct {
	line int64
	text string
}

// titles is a group of titles that begin with the same word: CHAPTER, BOOK.
type titles struct {
	word  string
	parts bool // the word names a part of a book; see isPart
	n     int64
	list  []title
}

// NewProse returns the summarizer of other texts. The name is that of the file; "" if there is none.
func NewProse(name string) *prose {
	p := &prose{logs: New(name), titles: map[string]*titles{}, blank: true}
	p.logs.rows.Visit, p.logs.rows.Skip = p.line, p.ahead
	p.logs.prose = true
	return p
}

func (p *prose) Add(b []byte) {
	p.logs.Add(b)
}

// ahead skips the leading lines of b that are like the line before, once no more than their number counts, and those
// of the rest that are no findings.
func (p *prose) ahead(b []byte) int {
	if n := p.skipRest(b); p.rest.search != nil {
		return n
	}
	if p.logs.rows.Number <= probeLines || !p.opening.Done() || !p.bullets.Done() || !p.listing.done() {
		return 0
	}
	before := p.logs.rows.Number
	n := p.logs.acceptAlike(b)
	if n > 0 {
		p.pending.line = 0
		p.listing.lines += p.logs.rows.Number - before
	}
	return n
}

func (p *prose) line(line []byte, size int64) {
	at := p.logs.rows.Number
	if size > p.size {
		p.size = size
		p.longest.line = at
	}
	rest := p.inRest()
	p.listing.add(line, at)
	p.logs.line(line, size)
	if p.logs.source {
		if _, ok := content.FileHeader(line); ok && !p.logs.named {
			p.addTitle(title{at, string(line[:min(len(line), digest.HeadBytes)])})
		}
		return
	}
	if rest {
		return
	}
	if t := p.logs.patterns.templates; at == probeLines && int64(len(t.all))*4 > t.lines {
		t.stop()
	}
	p.bullets.Add(line, at)
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		if p.pending.line > 0 {
			p.addTitle(p.pending)
		}
		p.pending.line = 0
		p.blank = true
		p.opening.Blank()
		return
	}
	p.pending.line = 0
	if p.blank && isTitle(text) {
		p.pending = title{at, string(text)}
	} else {
		p.opening.Add(text)
	}
	p.blank = false
}

// isTitle reports whether a line is a short title: in capitals, or "Chapter 1".
func isTitle(b []byte) bool {
	if len(b) > 4*titleRunes || b[0] < 'A' || utf8.RuneCount(b) > titleRunes {
		return false
	}
	if word, rest, ok := bytes.Cut(b, []byte{' '}); ok && isPart(string(word)) {
		return len(rest) > 0 && bytes.IndexByte(rest, ',') < 0
	}
	letters := 0
	for _, r := range string(b) {
		switch {
		case unicode.IsLower(r):
			return false
		case unicode.IsUpper(r):
			letters++
		}
	}
	return letters >= 3
}

var parts = content.SetOf("chapter book part section volume act scene appendix article")

func isPart(word string) bool { return parts[strings.ToLower(word)] }

func (p *prose) addTitle(t title) {
	word, _, _ := strings.Cut(t.text, " ")
	g := p.titles[word]
	if g == nil {
		if len(p.titles) == titlesKept {
			return
		}
		g = &titles{word: word, parts: isPart(word)}
		p.titles[word] = g
		p.order = append(p.order, g)
	}
	g.n++
	if len(g.list) < titlesKept {
		g.list = append(g.list, t)
	}
}

func (p *prose) Finish(s *digest.Summary) {
	p.logs.end()
	if p.pending.line > 0 {
		p.addTitle(p.pending)
	}
	if p.listing.is() { // the listed lines quote other files
		p.listing.summarize(s)
		return
	}
	if p.logs.errors.n > 0 {
		s.Says = p.logs.says(s)
	} else {
		s.Says = p.logs.panics.lines(s)
	}
	s.Total = p.total()
	if p.bullets.Is() {
		p.bullets.Summarize(s)
	}
	if t := p.logs.patterns.templates; !t.stopped && t.lines >= 20 && int64(len(t.all))*4 <= t.lines && t.repetitive() {
		s.Body = p.logs.body()
		if p.logs.errors.n == 0 { // else says has them
			s.Says = append(s.Says, p.logs.rare(s)...)
		}
	}
	// Program output has no first sentences, and numbers say no more than the lines that a receipt shows.
	if opening := p.opening.Text(); isProse(opening) && len(s.Says) == 0 && len(s.Body) == 0 {
		s.Body = append(s.Body, "begins: "+opening)
	}
	s.Body = append(s.Body, p.outline()...)
	if p.size > digest.MaxLine {
		s.Body = append(s.Body, "longest line: "+digest.Number(p.longest.line)+", "+digest.Number(p.size)+" bytes")
	}
	if p.rest.search != nil {
		s.Body = append(s.Body, "from line "+digest.Number(p.rest.first)+" on, only errors and stack traces were looked for")
	}
}

// isProse reports whether a third of a text are letters.
func isProse(text string) bool {
	letters := 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return text != "" && 3*letters >= utf8.RuneCountInString(text)
}

func (p *prose) total() []string {
	out := p.logs.panics.total()
	if n := p.logs.levels[failure] + p.logs.levels[fatal]; n > 0 {
		out = append(out, content.Plural(n, "error", "errors"))
	}
	return out
}

// outline returns the titles, groups of book parts and rare words first, so that a novel lists books before
// chapters. Groups that are too long are only counted.
func (p *prose) outline() []string {
	groups := slices.Clone(p.order)
	slices.SortStableFunc(groups, func(a, b *titles) int {
		if a.parts != b.parts {
			if a.parts {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.n, b.n)
	})
	var shown []title
	var rest []string
	for _, g := range groups {
		if len(shown)+int(min(g.n, titlesKept)) > titlesShown && len(shown) > 0 || g.n > titlesKept {
			if g.n == 1 {
				continue
			}
			rest = append(
				rest,
				digest.Number(g.n)+" lines like "+digest.Number(g.list[0].line)+": "+content.Clip(g.list[0].text, digest.NameRunes),
			)
			continue
		}
		shown = append(shown, g.list...)
	}
	slices.SortFunc(shown, func(a, b title) int { return cmp.Compare(a.line, b.line) })
	var out []string
	for _, t := range shown[:min(len(shown), titlesShown)] {
		out = append(out, digest.Number(t.line)+": "+content.Clip(t.text, digest.NameRunes))
	}
	return append(out, rest[:min(len(rest), 4)]...)
}
