package digest

import "strings"

const openingRunes = 240

// Sentences collects the beginning of a text: the first paragraph of at least 120 bytes.
type Sentences struct {
	b     []byte
	other []byte // the longest of the short paragraphs
	done  bool
}

// Done reports whether further lines change nothing.
func (s *Sentences) Done() bool { return s.done }

// Add appends a line of the text to the current paragraph.
func (s *Sentences) Add(line []byte) {
	if s.done {
		return
	}
	if len(s.b) > 0 {
		s.b = append(s.b, ' ')
	}
	s.b = append(s.b, line[:min(len(line), 4*openingRunes)]...)
	s.done = len(s.b) >= 4*openingRunes
}

// Blank ends a paragraph. A paragraph under 120 bytes is used only if no longer paragraph follows.
func (s *Sentences) Blank() {
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

// Text returns the first sentences, at most openingRunes runes.
func (s *Sentences) Text() string {
	if len(s.b) < len(s.other) {
		s.b = s.other
	}
	text := strings.Join(strings.Fields(string(s.b)), " ")
	cut := CutText(text, openingRunes)
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
