package summary

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

const (
	openingRunes = 240
	titleRunes   = 60
	titlesKept   = 64 // of one word, and words
	titlesShown  = 32
	probeLines   = 1000 // after so many lines it is clear whether a text is printed by patterns
)

// prose summarises plain text: how it begins, what looks like titles, what
// stands out. Output of programs is text too: panics and errors are told as those of a log. Source is not looked
// into; of several files of it, written one after the other, it is told where each begins.
type prose struct {
	logs    *logs
	listing *listing
	opening sentences
	pending title // a line that is a title if the next line is blank
	blank   bool  // the line before is blank
	titles  map[string]*titles
	order   []*titles
	longest quoted
	size    int64
}

type title struct {
	line int64
	text string
}

// titles are those that begin with the same word: CHAPTER, BOOK.
type titles struct {
	word  string
	parts bool // of a book, by their word
	n     int64
	list  []title
}

func newProse(name string) *prose {
	p := &prose{logs: newLog(name), listing: newListing(), titles: map[string]*titles{}, blank: true}
	p.logs.rows.visit, p.logs.rows.ahead = p.line, nil
	return p
}

func (p *prose) write(b []byte) { p.logs.write(b) }

func (p *prose) line(line []byte, size int64) {
	at := p.logs.rows.number
	if size > p.size {
		p.size = size
		p.longest.line = at
	}
	p.listing.add(line)
	p.logs.line(line, size)
	if p.logs.source {
		if _, ok := content.FileHeader(line); ok && !p.logs.named {
			p.addTitle(title{at, string(line[:min(len(line), headBytes)])})
		}
		return
	}
	if t := p.logs.templates; at == probeLines && int64(len(t.all))*4 > t.lines {
		t.stop()
	}
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		if p.pending.line > 0 {
			p.addTitle(p.pending)
		}
		p.pending.line = 0
		p.blank = true
		p.opening.blank()
		return
	}
	p.pending.line = 0
	if p.blank && isTitle(text) {
		p.pending = title{at, string(text)}
	} else {
		p.opening.add(text)
	}
	p.blank = false
}

// isTitle takes short lines that are no sentence: in capitals, or numbered.
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

func isPart(word string) bool {
	switch strings.ToLower(word) {
	case "chapter", "book", "part", "section", "volume", "act", "scene", "appendix", "article":
		return true
	}
	return false
}

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

func (p *prose) close(s *Summary) {
	p.logs.end()
	if p.pending.line > 0 {
		p.addTitle(p.pending)
	}
	if p.listing.is() { // what it quotes is not its own
		p.listing.tell(s)
		return
	}
	if p.logs.bad > 0 {
		s.Says = p.logs.says(s)
	} else {
		s.Says = p.logs.panics.lines(s)
	}
	s.Total = p.total()
	if t := p.logs.templates; !t.stopped && t.lines >= 20 && int64(len(t.all))*4 <= t.lines && t.telling() {
		s.Body = p.logs.body()
	}
	// The output of a program has no first sentences.
	if opening := p.opening.text(); opening != "" && len(s.Says) == 0 && len(s.Body) == 0 {
		s.Body = append(s.Body, "begins: "+opening)
	}
	s.Body = append(s.Body, p.outline()...)
	if p.size > maxLine {
		s.Body = append(s.Body, "longest line: "+number(p.longest.line)+", "+number(p.size)+" bytes")
	}
}

func (p *prose) total() []string {
	out := p.logs.panics.total()
	if n := p.logs.levels[failure] + p.logs.levels[fatal]; n > 0 {
		out = append(out, counted(n, "error", "errors"))
	}
	return out
}

// outline is the titles, those of the rarest word first: of a novel its books before its chapters. Where
// they are more than can be listed they are counted.
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
			rest = append(rest, number(g.n)+" lines like "+number(g.list[0].line)+": "+content.Clip(g.list[0].text, nameRunes))
			continue
		}
		shown = append(shown, g.list...)
	}
	slices.SortFunc(shown, func(a, b title) int { return cmp.Compare(a.line, b.line) })
	var out []string
	for _, t := range shown[:min(len(shown), titlesShown)] {
		out = append(out, number(t.line)+": "+content.Clip(t.text, nameRunes))
	}
	return append(out, rest[:min(len(rest), 4)]...)
}

// sentences gathers how a text begins: its first paragraph of some length.
type sentences struct {
	b     []byte
	other []byte // the longest of the paragraphs that were short
	done  bool
}

// add takes a line of the text.
func (s *sentences) add(line []byte) {
	if s.done {
		return
	}
	if len(s.b) > 0 {
		s.b = append(s.b, ' ')
	}
	s.b = append(s.b, line[:min(len(line), 4*openingRunes)]...)
	s.done = len(s.b) >= 4*openingRunes
}

// blank ends a paragraph; one of a few words is passed over as long as there are longer ones.
func (s *sentences) blank() {
	if s.done {
		return
	}
	if len(s.b) >= 120 {
		s.done = true
		return
	}
	if len(s.b) > len(s.other) {
		s.other = append(s.other[:0], s.b...)
	}
	s.b = s.b[:0]
}

// text is the first sentences, as far as they fit.
func (s *sentences) text() string {
	if len(s.b) < len(s.other) {
		s.b = s.other
	}
	text := strings.Join(strings.Fields(string(s.b)), " ")
	cut := cutText(text, openingRunes)
	if len(cut) == len(text) {
		return text
	}
	for _, end := range []string{". ", "? ", "! ", "。", "！", "？"} {
		if i := strings.LastIndex(cut, end); i > len(cut)/3 {
			return cut[:i+len(strings.TrimSpace(end))] + " …"
		}
	}
	return cut + "…"
}
