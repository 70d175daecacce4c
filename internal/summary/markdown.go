package summary

import (
	"bytes"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

const (
	headingsKept  = 2000
	headingsShown = 60
)

// markdown summarises Markdown: its headings and where they stand.
type markdown struct {
	rows     rows
	headings []heading
	counts   [7]int64 // headings by level
	blocks   int64    // of code
	fence    []byte   // of the open block: its marks
	matter   bool     // in the front matter
	before   []byte   // the line before: a heading where it is underlined
	opening  sentences
}

type heading struct {
	line  int64
	level int
	text  string
}

func newMarkdown() *markdown {
	m := &markdown{}
	m.rows.visit = m.line
	return m
}

func (m *markdown) write(p []byte) { m.rows.write(p) }

func (m *markdown) line(line []byte, _ int64) {
	at := m.rows.number
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
	indent := len(text) - len(bytes.TrimLeft(text, " "))
	text = text[indent:]
	if level := underline(text); level > 0 && len(m.before) > 0 && indent < 4 {
		m.add(heading{at - 1, level, string(m.before)})
		m.before = m.before[:0]
		return
	}
	m.before = m.before[:0]
	if indent > 3 || len(text) == 0 || text[0] == '\t' {
		m.opening.blank()
		return
	}
	if text[0] == '#' {
		level := 0
		for level < len(text) && text[level] == '#' {
			level++
		}
		if level <= 6 && (level == len(text) || text[level] == ' ' || text[level] == '\t') {
			title := bytes.TrimSpace(bytes.TrimRight(bytes.TrimSpace(text[level:]), "#"))
			m.add(heading{at, level, string(title[:min(len(title), headBytes)])})
			return
		}
	}
	if bytes.IndexByte([]byte(">-*+|<![="), text[0]) < 0 {
		m.before = append(m.before, text[:min(len(text), headBytes)]...)
		m.opening.add(text)
	}
}

// fenced follows blocks of code: what stands in them is no heading.
func (m *markdown) fenced(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " ")
	marks := 0
	if len(trimmed) > 0 && (trimmed[0] == '`' || trimmed[0] == '~') {
		for marks < len(trimmed) && trimmed[marks] == trimmed[0] {
			marks++
		}
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

// underline is 1 for a line of =, 2 for one of -, else 0.
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
		deepest := 0
		for _, k := range m.headings {
			deepest = max(deepest, k.level)
		}
		if h.level >= deepest {
			return
		}
		kept := m.headings[:0]
		for _, k := range m.headings {
			if k.level < deepest {
				kept = append(kept, k)
			}
		}
		m.headings = kept
	}
	m.headings = append(m.headings, h)
}

func (m *markdown) close(s *Summary) {
	m.rows.close()
	var n int64
	for _, c := range m.counts {
		n += c
	}
	total := counted(n, "heading", "headings")
	if m.blocks > 0 {
		total += ", " + counted(m.blocks, "code block", "code blocks")
	}
	s.Total = []string{total}
	if len(m.fence) > 0 {
		s.Says = append(s.Says, "ends inside a code block")
	}
	s.Body = m.outline()
	if opening := m.opening.text(); opening != "" {
		s.Body = append(s.Body, "begins: "+opening)
	}
}

// outline is the headings in order, down to the level at which they are few enough to be listed.
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
	left := int64(0)
	for _, h := range m.headings {
		if h.level > deepest || len(out) == headingsShown {
			left++
			continue
		}
		out = append(out, number(h.line)+": "+strings.Repeat("#", h.level)+" "+content.Clip(h.text, lineRunes))
	}
	for level := deepest + 1; level <= 6; level++ {
		if m.counts[level] > 0 {
			out = append(out, "not listed: "+counted(m.counts[level], "heading", "headings")+" of level "+number(int64(level)))
		}
	}
	return out
}
