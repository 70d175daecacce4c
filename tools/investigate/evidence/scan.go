package evidence

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxQuote = 2000 // bytes; a mark that is not closed within them opens no quote
	maxTries = 50   // closing marks tried for one opening mark
)

type kind int

const (
	wordToken  kind = iota // a word that may be a bare path
	citeToken              // a path with a line
	quoteToken             // quoted text
)

// token is a part of a sentence that matters to citations.
type token struct {
	kind        kind
	start, end  int    // byte range with its quotation marks
	from, to    int    // and without them
	name        string // path of a word or citation
	first, last int    // cited lines
	ticked      bool   // in back-ticks
	parts       []part
}

// isName reports whether a quote is a name in back-ticks: it says less than text between quotation marks.
func (c *checker) isName(t token) bool {
	return t.ticked && !strings.ContainsAny(c.text[t.from:t.to], " \t\n")
}

// cite makes the token a citation of lines; last may be "".
func (t *token) cite(name, first, last string) {
	t.kind, t.name, t.first, t.last = citeToken, name, lineNumber(first), lineNumber(cmp.Or(last, first))
}

// lineNumber limits a number to 10^9, which is outside every file.
func lineNumber(digits string) int {
	n, _ := strconv.Atoi(digits) // the largest int if it is too large
	return min(n, 1_000_000_000)
}

const (
	pathRunes = `[\pL\pN\pM/._@+-]+`
	lineRange = `:([0-9]+)(?:(-|–)([0-9]+))?`
)

var (
	bullet    = content.Pattern(`^[ \t]*(?:[-*]|[0-9]+\.)(?:\s|$)`)
	foreign   = content.Pattern("^(?:" + pathRunes + `(?:://|\\)|[A-Za-z]:[/\\])[^\s"<>)”` + "`]*") // URL, Windows
	word      = content.Pattern(`^(-*)(` + pathRunes + `)(?:` + lineRange + `\b)?`)
	lineEnd   = content.Pattern(lineRange + `$`)
	plainPath = content.Pattern(`^` + pathRunes + `(?: +` + pathRunes + `)*$`)
	extension = content.Pattern(`\.[\pL\pN]*\pL[\pL\pN]*$`)
	letter    = content.Pattern(`\pL`)
	joined    = content.Pattern("^(?:[^\\pL\\pN]|\\b(?:and|or|then)\\b|\"[^\"]*\"|“[^”]*”|`[^`]*`)*$") // between quotes
	opening   = content.Pattern("^(?:\"|“|`+)")

	sentenceEnd  = content.Pattern("^[.!?](?:[\\s\\pZ]*$|[\\s\\pZ]+[\\p{Lu}`\"“])")
	abbreviation = content.Pattern(
		`(?i)(?:^|[^\pL.])(?:e\.g|i\.e|eg|ie|cf|vs|viz|approx|resp|incl|esp|ca|fig|al|n\.b|a\.k\.a)\.$`)
)

// scan splits the text into blocks, at blank lines and around list items, and scans each.
func (c *checker) scan() {
	start, at := 0, 0
	for line := range strings.Lines(c.text) {
		isBullet := bullet().MatchString(line)
		if isBullet || strings.TrimSpace(line) == "" {
			c.block(start, at)
			start = at
		}
		if at += len(line); isBullet {
			c.block(start, at)
			start = at
		}
	}
	c.block(start, at)
}

// block scans the sentences of text[lo:hi]. No sentence ends inside a quote.
func (c *checker) block(lo, hi int) {
	text := c.text[:hi]
	var tokens []token
	for i := lo; i < hi; {
		if open, closing := quoteAt(text, lo, i); closing > 0 {
			t := c.quote(i, i+open, closing)
			tokens = append(tokens, t)
			i = t.end
		} else if open > 0 {
			i += open
		} else if sentenceEnd().MatchString(text[i:]) && !abbreviation().MatchString(text[max(lo, i-8):i+1]) {
			i++
			c.sentence(tokens)
			tokens = tokens[:0]
		} else if url := foreign().FindString(text[i:]); url != "" {
			i += max(1, len(strings.TrimRight(url, ".!?,;:")))
		} else if m := word().FindStringSubmatch(text[i:]); m != nil {
			t := token{start: i + len(m[1]), name: strings.TrimRight(m[2], ".-")} // without punctuation
			t.end = t.start + len(t.name)
			if m[3] != "" && c.isPath(m[2], false) {
				t.cite(m[2], m[3], m[5])
				t.end = i + len(m[0])
			}
			t.from, t.to = t.start, t.end
			tokens = append(tokens, t)
			i = max(i+1, t.end, t.start+len(m[2])-1) // the last mark may end the sentence
		} else {
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
		}
	}
	c.sentence(tokens)
}

// quote returns the token of quoted text. Text that is itself a citation, or a bare path in back-ticks, is no quote.
func (c *checker) quote(start, from, to int) token {
	body := c.text[from:to]
	t := token{kind: quoteToken, start: start, end: to + from - start, from: from, to: to, ticked: c.text[start] == '`'}
	if m := lineEnd().FindStringSubmatch(body); m != nil && c.isPath(body[:len(body)-len(m[0])], t.ticked) {
		t.cite(body[:len(body)-len(m[0])], m[1], m[3])
	} else if t.ticked && c.isPath(body, true) && c.resolve(body) != "" {
		t.kind, t.name = wordToken, body
	}
	if language := strings.IndexByte(body, '\n'); from-start >= 3 && t.ticked && language >= 0 {
		t.from += language // a fence begins with the name of a language
	}
	return t
}

// isPath reports whether name is a path: it ends in an extension, or it exists.
func (c *checker) isPath(name string, ticked bool) bool {
	if len(name) < 2 || !letter().MatchString(name) || !ticked && strings.Contains(name, " ") {
		return false
	}
	return plainPath().MatchString(name) && extension().MatchString(name) ||
		!strings.ContainsAny(name, "\n\\:\x00") && c.resolve(name) != ""
}

// quoteAt returns the length of the opening quotation mark at i, or 0, and the offset of the closing one.
// closing is 0 if the mark is not closed within maxQuote bytes.
func quoteAt(text string, lo, i int) (open, closing int) {
	mark := opening().FindString(text[i:min(len(text), i+maxQuote)])
	if before, _ := utf8.DecodeLastRuneInString(text[lo:i]); mark == "" || mark == `"` && isWord(before) {
		return len(mark), 0 // a mark after a word closes a quote or means inches
	}
	open = len(mark)
	if mark == "“" {
		mark = "”" // of the same length
	}
	for at, tries := i+open, 0; tries < maxTries; tries++ {
		n := strings.Index(text[at:max(at, min(len(text), i+maxQuote))], mark)
		if n < 0 {
			break
		}
		at += n
		next, _ := utf8.DecodeRuneInString(text[at+open:])
		run := open
		if mark[0] == '`' {
			run = len(opening().FindString(text[at:]))
		}
		if run == open && (mark != `"` || text[at-1] != '\\' && !isWord(next)) {
			return open, at
		}
		at += run
	}
	return open, 0
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
