// Package markdown summarises Markdown: headings and the first sentences.
//
// Inline syntax stays as written.
package markdown

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	headingsKept  = 2000
	headingsShown = 60
)

// markdown collects the headings of a text and their line numbers.
type markdown struct {
	rows     digest.LineSplitter
	headings []heading
	counts   [7]int64 // number of headings by level
	blocks   int64    // number of code blocks
	fence    []byte   // opening marks of the current code block; empty outside code blocks
	matter   bool     // inside the front matter
	before   []byte   // the previous line, which is a heading if the current line underlines it
	bullets  digest.Bullets
	opening  digest.Sentences
}

type heading struct {
	line  int64
	level int
	text  string
}

// New returns the summarizer of Markdown.
func New() *markdown {
	m := &markdown{}
	m.rows.Visit = m.line
	return m
}

func (m *markdown) Add(p []byte) { m.rows.Write(p) }

func (m *markdown) line(line []byte, _ int64) {
	at := m.rows.Number
	text := bytes.TrimRight(line, " \t\r")
	if m.matter {
		m.matter = string(text) != "---" && string(text) != "..."
		return
	}
	if at == 1 && string(text) == "---" {
		m.matter = true
		return
	}
	if m.fenced(text) {
		m.before = m.before[:0]
		return
	}
	m.bullets.Add(text, at)
	indent := len(text) - len(bytes.TrimLeft(text, " "))
	text = text[indent:]
	if level := underline(text); level > 0 && len(m.before) > 0 && indent < 4 {
		m.add(heading{at - 1, level, string(m.before)})
		m.before = m.before[:0]
		return
	}
	m.before = m.before[:0]
	if indent > 3 || len(text) == 0 || text[0] == '\t' {
		m.opening.Blank()
		return
	}
	if text[0] == '#' {
		level := len(text) - len(bytes.TrimLeft(text, "#"))
		if level <= 6 && (level == len(text) || text[level] == ' ' || text[level] == '\t') {
			title := bytes.TrimSpace(bytes.TrimRight(bytes.TrimSpace(text[level:]), "#"))
			m.add(heading{at, level, string(title[:min(len(title), digest.HeadBytes)])})
			return
		}
	}
	if bytes.IndexByte([]byte(">-*+|<![="), text[0]) < 0 {
		m.before = append(m.before, text[:min(len(text), digest.HeadBytes)]...)
		m.opening.Add(text)
	}
}

// fenced reports whether a line belongs to a fenced code block, which contains no headings, and updates the state.
func (m *markdown) fenced(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " ")
	marks := 0
	if len(trimmed) > 0 && (trimmed[0] == '`' || trimmed[0] == '~') {
		marks = len(trimmed) - len(bytes.TrimLeft(trimmed, string(trimmed[:1])))
	}
	if len(m.fence) > 0 {
		if marks >= len(m.fence) && trimmed[0] == m.fence[0] && marks == len(trimmed) {
			m.fence = nil
		}
		return true
	}
	if marks < 3 || len(text)-len(trimmed) > 3 || trimmed[0] == '`' && bytes.IndexByte(trimmed[marks:], '`') >= 0 {
		return false
	}
	m.fence = bytes.Clone(trimmed[:min(marks, 64)])
	m.blocks++
	return true
}

// underline returns 1 for a line of =, 2 for a line of -, else 0.
func underline(text []byte) int {
	switch {
	case len(text) == 0:
		return 0
	case len(bytes.Trim(text, "=")) == 0:
		return 1
	case len(bytes.Trim(text, "-")) == 0:
		return 2
	}
	return 0
}

func (m *markdown) add(h heading) {
	m.counts[h.level]++
	if len(m.headings) == headingsKept {
		deepest := slices.MaxFunc(m.headings, func(a, b heading) int { return cmp.Compare(a.level, b.level) }).level
		if h.level >= deepest {
			return
		}
		m.headings = slices.DeleteFunc(m.headings, func(k heading) bool { return k.level == deepest })
	}
	m.headings = append(m.headings, h)
}

func (m *markdown) Finish(s *digest.Summary) {
	m.rows.Close()
	var n int64
	for _, c := range m.counts {
		n += c
	}
	total := content.Plural(n, "heading", "headings")
	if m.blocks > 0 {
		total += ", " + content.Plural(m.blocks, "code block", "code blocks")
	}
	s.Total = []string{total}
	if m.bullets.Is() {
		m.bullets.Summarize(s)
	}
	if len(m.fence) > 0 {
		s.Says = append(s.Says, "ends inside a code block")
	}
	s.Body = m.outline()
	if opening := m.opening.Text(); opening != "" {
		s.Body = append(s.Body, "begins: "+opening)
	}
}

// outline lists the headings in order, down to the deepest level at which at most headingsShown remain.
func (m *markdown) outline() []string {
	deepest, sum := 0, int64(0)
	for level := 1; level <= 6; level++ {
		if sum += m.counts[level]; sum > headingsShown && deepest > 0 {
			break
		}
		if m.counts[level] > 0 {
			deepest = level
		}
	}
	var out []string
	left := int64(0) // headings of these levels that are not listed
	for level := range deepest + 1 {
		left += m.counts[level]
	}
	for _, h := range m.headings {
		if h.level > deepest || len(out) == headingsShown {
			continue
		}
		left--
		out = append(out, digest.Number(h.line)+": "+strings.Repeat("#", h.level)+" "+content.Clip(h.text, digest.LineRunes))
	}
	if left > 0 {
		out = append(out, "not listed: "+content.Plural(left, "further heading", "further headings"))
	}
	for level := deepest + 1; level <= 6; level++ {
		if m.counts[level] > 0 {
			headings := content.Plural(m.counts[level], "heading", "headings")
			out = append(out, fmt.Sprintf("not listed: %s of level %d", headings, level))
		}
	}
	return out
}
