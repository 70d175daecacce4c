package digest

import (
	"bytes"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	bulletItems = 5  // minimum number of items of a list that is reported
	bulletDepth = 64 // maximum depth that is counted
	tabWidth    = 4
)

// Bullets recognises a text that is a list: its lines begin with "- ", "* ", "• " or "1. ", continue such an item with
// more indentation, or are empty.
type Bullets struct {
	lines   int64 // number of lines that are not empty
	items   int64
	other   int64 // number of lines outside of items
	indents []int // of the current item and of those that it is below
	depth   int
	first   bullet
	last    bullet
	text    []byte // of the last item
}

// bullet is an item of the list.
type bullet struct {
	line int64
	text string
}

// Done reports whether the text is no list: over half of more than 100 lines are outside of items.
func (b *Bullets) Done() bool { return b.lines > 100 && 2*b.other > b.lines }

// Add counts a line with its number in the text.
func (b *Bullets) Add(line []byte, at int64) {
	if b.Done() {
		return
	}
	rest := bytes.TrimLeft(line, " \t")
	blanks := line[:len(line)-len(rest)]
	indent := len(blanks) + (tabWidth-1)*bytes.Count(blanks, []byte{'\t'})
	if line = rest; len(line) == 0 {
		return
	}
	b.lines++
	n := bulletMark(line)
	if n == 0 {
		if len(b.indents) == 0 || indent <= b.indents[0] {
			b.other++
			b.indents = b.indents[:0]
		}
		return
	}
	for len(b.indents) > 0 && b.indents[len(b.indents)-1] >= indent {
		b.indents = b.indents[:len(b.indents)-1]
	}
	if len(b.indents) < bulletDepth {
		b.indents = append(b.indents, indent)
	}
	b.depth = max(b.depth, len(b.indents))
	b.items++
	b.last.line = at
	b.text = append(b.text[:0], line[n:min(len(line), n+HeadBytes)]...)
	if b.items == 1 {
		b.first = bullet{at, string(b.text)}
	}
}

// bulletMark returns the length of the mark at the start of a line with the blanks after it, 0 if there is none.
func bulletMark(line []byte) int {
	n := 0
	switch c := line[0]; {
	case c == '-' || c == '*':
		n = 1
	case c == 0xe2: // the first byte of • and of other bullets
		if r, size := utf8.DecodeRune(line); r == '•' || r == '◦' || r == '▪' || r == '‣' || r == '–' {
			n = size
		}
	case c >= '0' && c <= '9':
		for n < min(len(line), 5) && line[n] >= '0' && line[n] <= '9' {
			n++
		}
		if n == len(line) || line[n] != '.' && line[n] != ')' {
			return 0
		}
		n++
	}
	rest := bytes.TrimLeft(line[n:], " \t")
	if n == 0 || len(rest) == 0 || len(rest) == len(line)-n {
		return 0
	}
	return len(line) - len(rest)
}

// Is reports whether the text is a list: at least half of its lines are items, and at most a tenth are outside of one.
func (b *Bullets) Is() bool {
	return b.items >= bulletItems && 2*b.items >= b.lines && 10*b.other <= b.lines
}

// Summarize adds the number of items, their depth, and the first and the last item to the summary.
func (b *Bullets) Summarize(s *Summary) {
	total := content.Plural(b.items, "list item", "list items")
	if b.depth > 1 {
		total += ", " + Number(int64(b.depth)) + " levels deep"
	}
	s.Total = append(s.Total, total)
	b.last.text = string(b.text)
	for _, x := range []struct {
		name string
		item bullet
	}{{"first item", b.first}, {"last item", b.last}} {
		lead := x.name + ", line " + Number(x.item.line)
		s.Says = append(s.Says, s.AddQuote(lead, x.item.line, content.Clip(x.item.text, LineRunes), ""))
	}
}
