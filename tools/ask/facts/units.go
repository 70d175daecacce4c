package facts

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxList = 8  // items of a list that are joined to its heading
	wrapped = 40 // bytes of a line from which on the next may continue it
)

// unit is a part of a passage that can be a fact.
type unit struct {
	from, to int // lines of the passage, from 0
	text     string
}

// line is one line of a passage.
type line struct {
	text   string // without marks at its begin, and with single blanks; "" of a blank line and of a ruler
	indent int    // bytes of blanks before it
	item   bool   // begins an item of a list
	key    bool   // a key with its value, or a row
	title  bool
	folded bool // the text of a key is below it: YAML's "key: >"
	code   bool // in a fenced block
}

var (
	marks  = content.Pattern(`^(?:[#>*•·‣+-]+\s+)+`)
	marker = content.Pattern(`^(?:[-*•·‣+]|\d{1,3}[.)]|[a-z]\))\s+\S`)
	// keyValue matches "Total Budget: $450,000", "name = value", "| a | b |" and columns.
	keyValue = content.Pattern(`^["']?[\p{L}\d][^.!?]{0,60}?(: |:$| = |\t)|^\||[^.!?:;]  +\S.*[^.!?:;]  +\S`)
	block    = content.Pattern(`: [|>][+-]?\d?$`)
)

// read returns the lines of a passage.
func read(text string) []line {
	var lines []line
	comments := func(raw string) bool { return strings.HasPrefix(strings.TrimSpace(raw), "# ") }
	raws := strings.Split(strings.TrimRight(text, "\n"), "\n")
	code := false
	for n, raw := range raws {
		bare := strings.TrimSpace(raw)
		if strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~") {
			code, bare = !code, ""
		}
		l := line{code: code, indent: len(raw) - len(strings.TrimLeft(raw, " \t")), item: marker().MatchString(bare)}
		bare = strings.TrimSpace(marks().ReplaceAllString(bare, ""))
		if strings.ContainsFunc(bare, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			l.text = strings.Join(strings.Fields(bare), " ")
		}
		l.key = keyValue().MatchString(bare)
		if at := block().FindStringIndex(l.text); at != nil {
			l.folded, l.text = true, l.text[:at[0]+1]
		}
		l.title = strings.HasPrefix(strings.TrimSpace(raw), "#") &&
			!(comments(raw) && (n > 0 && comments(raws[n-1]) || n+1 < len(raws) && comments(raws[n+1]))) // wrapped comments
		lines = append(lines, l)
	}
	return lines
}

// units cuts a passage into rows, key–value lines, list items, lists with their heading, and sentences.
func units(p Passage) (all []unit) {
	lines := read(p.Text)
	for n := 0; n < len(lines); n++ {
		l := lines[n]
		switch {
		case l.text == "":
		case p.Table, p.Code, l.code:
			all = append(all, unit{n, n, l.text})
		case strings.HasSuffix(l.text, ":") && !l.folded:
			n = list(lines, n, p.Alone, &all)
		case l.title:
			all = append(all, unit{n, n, l.text})
		default:
			n = paragraph(lines, n, p.Alone, &all)
		}
	}
	return all
}

// list takes the heading of a list with its items, and each item alone. It returns its last line.
func list(lines []line, n int, alone bool, all *[]unit) int {
	text, to := lines[n].text, n
	for items := 0; items < maxList && to+1 < len(lines); items++ {
		next := lines[to+1]
		if next.text == "" || !next.item && next.indent <= lines[n].indent {
			break
		}
		text += separator(text)
		to = paragraph(lines, to+1, alone, all)
		text += (*all)[len(*all)-1].text
	}
	*all = append(*all, unit{n, to, text})
	return to
}

func separator(text string) string {
	if strings.HasSuffix(text, ":") {
		return " "
	}
	return ", "
}

// paragraph takes an item of a list, a key with its value, or a paragraph, with the lines that continue it. A paragraph
// and what is too long for one fact are cut into sentences. It returns its last line.
func paragraph(lines []line, n int, alone bool, all *[]unit) int {
	to := n
	for !alone && to+1 < len(lines) && continues(lines, n, to+1) {
		to++
	}
	if whole := lines[n].item || lines[n].key; !whole || to > n && size(lines[n:to+1]) > maxText {
		sentences(lines[:to+1], n, all)
		return to
	}
	text := lines[n].text
	for _, l := range lines[n+1 : to+1] {
		if l.item || l.key {
			text += ", " + l.text
		} else {
			text += " " + l.text
		}
	}
	*all = append(*all, unit{n, to, text})
	return to
}

func size(lines []line) (n int) {
	for _, l := range lines {
		n += len(l.text)
	}
	return n
}

// continues reports whether a line belongs to what begins at another: lines that are indented below an item or a key,
// and prose that was wrapped.
func continues(lines []line, begin, at int) bool {
	first, before, l := lines[begin], lines[at-1], lines[at]
	below := l.indent > first.indent
	r, _ := utf8.DecodeRuneInString(l.text)
	mid := !endsSentence(before.text) && (unicode.IsLower(r) || len(before.text) >= wrapped)
	switch {
	case l.text == "" || l.title || l.code:
		return false
	case first.folded:
		return below
	case l.item, l.key && !(first.item && below):
		return false
	case first.item || first.key:
		return below || l.indent == first.indent && mid
	}
	return l.indent == 0 || len(before.text) >= wrapped || mid
}

// sentences takes the sentences of the lines from n on.
func sentences(lines []line, n int, all *[]unit) {
	from, text := n, ""
	for m := n; m < len(lines); m++ {
		for line := lines[m].text; line != ""; {
			end := sentenceEnd(line)
			if text == "" {
				from = m
			}
			text = strings.TrimSpace(text + " " + line[:end])
			if end < len(line) || endsSentence(line) || len(text) > maxText {
				*all = append(*all, unit{from, m, text})
				text = ""
			}
			line = strings.TrimSpace(line[end:])
		}
	}
	if text != "" {
		*all = append(*all, unit{from, len(lines) - 1, text})
	}
}

// sentenceEnd returns where the first sentence of a line ends, which may be the end of the line.
func sentenceEnd(line string) int {
	for i, r := range line {
		if !strings.ContainsRune(".!?。！？", r) {
			continue
		}
		after := line[i+utf8.RuneLen(r):]
		if r >= 0x3000 {
			return i + utf8.RuneLen(r)
		}
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " "))
		word := line[strings.LastIndexByte(line[:i], ' ')+1 : i]
		// "Dr. Weber" and "e.g. this" are no ends; a number such as "3." at a line's begin is none either
		if strings.HasPrefix(after, " ") && len(word) > 2 && (unicode.IsUpper(next) || unicode.IsDigit(next)) {
			return i + 1
		}
	}
	return len(line)
}

func endsSentence(line string) bool {
	return line != "" && strings.ContainsAny(line[len(line)-1:], ".!?")
}
