package funnel

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// The words by which a model knows this server's own lines.
const (
	notice   = "LARGE OUTPUT DETECTED: "
	nextWord = "next: "
	noteWord = "note: "
	errWord  = "error: "
)

// What makes a text of others fit to be shown. They are variables so that tests can show what would pass without them.
var (
	visible = content.Visible
	fence   = defuse
)

// maxAnswer bounds one block of text, in bytes: a common client takes no more than 1 MB.
const maxAnswer = 1_000_000

// say adds a block of text to the answer and counts it. It is the one place
// through which text reaches the model: what hidden characters are left are made visible here.
func (c *call) say(text string) {
	text = visible(c.masked(text), false)
	c.answer.Blocks = append(c.answer.Blocks, Block{Text: text})
	c.shown += int64(c.count(text))
}

// count is what a text costs. It remembers the last one: what was weighed is then said.
func (c *call) count(text string) int {
	if text != c.weighed {
		c.weighed, c.weight = text, c.f.o.Counter.Count(text)
	}
	return c.weight
}

// masked masks what no stream has masked: names, errors, and what else is worded around an output.
func (c *call) masked(s string) string {
	s, n := c.f.o.Mask.String(s)
	c.found += n
	return s
}

// secrets is how many were masked in the output, its rows and what is said beside them.
func (c *call) secrets() int {
	n := c.found
	if c.out != nil {
		n += c.out.pass.mask.Found() + c.out.page.mask.Found() + c.out.found
	}
	return n
}

// maskedNote says that there is more than is shown, and that it is no fault of the output.
func maskedNote(n int) string { return plural(int64(n), "secret") + " masked" }

// place is where a text of others stands: what it could be taken for depends on that.
type place int

const (
	alone     place = iota // as an answer of its own, with notes and errors beside it
	inRow                  // among the rows of a page, whose header, notes and errors stand beside them
	inReceipt              // within a receipt: each word that begins a line of one is ours
)

// Fence marks each line of a text of others that imitates one of this server's, for those who show such a text beside an
// answer of the funnel: as a resource, or within a prompt.
func Fence(text string) string { return fence(text, alone) }

// foreign makes a text that others wrote fit to be shown: hidden characters
// are made visible and lines that imitate ours are marked.
func foreign(s string, json bool, at place) string {
	return fence(visible(s, json), at)
}

// defuse marks each line that imitates a line of ours with ">" before it.
//
// So a line of ours is never one of others: whoever reads an answer line by line can take each line that begins as ours do
// for ours, and each ">" before such words for the mark of one that is not.
//
// Lines that begin so already get one more, as mail quotes "From ": what was
// written is had back by taking one ">" from each line that imitates ours behind one or more of them.
func defuse(s string, where place) string {
	var b strings.Builder
	done := 0 // of s, how much is in b
	for at := 0; at < len(s); {
		end := len(s)
		if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if imitates(s[at:end], where) {
			b.WriteString(s[done:at])
			b.WriteByte('>')
			done = at
		}
		at = end
	}
	if done == 0 && b.Len() == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// Lines of ours, by how they begin. What follows are those that stand in every answer, exactly as they are written: so
// few lines of others begin so that each of them is marked. Where a receipt stands around it, any line that begins with one
// of its words is. Elsewhere ordinary texts have other things than we do behind "next", "total" and the like.
var (
	// Compilers write such lines too, so only in their exact shape.
	imitationExact = content.Pattern(`^(note: |error: |kept (whole|in part) as |not kept \(|no (rows|output)$|\w+: no answer within )`)
	imitation      = content.Pattern(`(?i)^(large\s+output\s+detected` +
		`|---\s*(head|tail)\s*:|---\s*\d+\s+lines?\s+not\s+shown` +
		`|showing\s+(none\b|the\s+first\s+\d|\d+\s*-\s*\d+\s+of\b)|not\s+shown\s*:\s*\d+\s+token` +
		`|kept\s+whole\s+as\s+obs:` +
		`|total\s*:\s*~?\d+\s+(lines?,\s*\d+\s+char|bytes?\s*;\s*binary)|next\s*:\s*(direct\b|\w+\s*\{))`)
	imitationStrict = content.Pattern(`(?i)^(large\s+output\s+detected|---\s*(head|tail)\s*:|---\s*\d+\s+lines?\s+not\s+shown` +
		`|showing\s+(none\b|the\s+first\s+\d|\d+\s*-\s*\d+\s+of\b)|not\s+shown\s*:|(kept|read)\s+[a-z ]+\s(as\s+obs:|from\s)|not\s+kept\b` +
		`|(total|shape|saved\s+to|next|note|error)\s*:)`)
	imitationInRow = content.Pattern(`^==> .+ <==`)
)

// imitates says that a line could be taken for one of ours by its words, whatever marks and blanks stand before them and
// whichever look-alikes its letters are.
func imitates(line string, at place) bool {
	line = strings.TrimRight(strings.TrimLeft(line, ">"), "\r\n")
	if at == inRow && imitationInRow().MatchString(line) {
		return true
	}
	bare := strings.TrimLeftFunc(line, func(r rune) bool { return r == '>' || unicode.IsSpace(r) })
	if bare == "" || !begins(bare) {
		return false
	}
	line, bare = plainLetters(line), plainLetters(bare)
	return opens(bare) && words(line, bare, at)
}

// words is the dear look at a line.
func words(line, bare string, at place) bool {
	return imitationExact().MatchString(line) || imitation().MatchString(bare) || at == inReceipt && imitationStrict().MatchString(bare)
}

// begins says that a line may be one of ours by its first letter: most are not.
func begins(line string) bool {
	c := line[0]
	if c >= utf8.RuneSelf {
		r, _ := utf8.DecodeRuneInString(line)
		c = plainLetter(r)
	}
	return c != 0 && strings.IndexByte(beginnings, c) >= 0 || timesOut(line)
}

// timesOut says that a line may begin with the name of a tool that gave no answer, in letters that look so.
func timesOut(line string) bool {
	rest := noAnswer
	for _, r := range line[:min(len(line), told)] {
		c := plainLetter(r)
		if c == rest[0] {
			if rest = rest[1:]; rest == "" {
				return true
			}
			continue
		}
		name := c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !name || len(rest) < len(noAnswer) {
			return false
		}
	}
	return false
}

// opens says that a line of plain letters may be one of ours by its first word.
func opens(line string) bool {
	n := 0
	var word [len("showing") + 1]byte
	for n < min(len(line), len(word)) {
		c := line[n] | 0x20
		if c >= utf8.RuneSelf {
			return true // a letter that folds to one of ASCII's may stand here
		}
		if c < 'a' || c > 'z' {
			break
		}
		word[n] = c
		n++
	}
	switch string(word[:n]) {
	case "error", "kept", "large", "next", "no", "not", "note", "read", "saved", "shape", "showing", "total":
		return true
	}
	return strings.HasPrefix(line, "---") || timesOut(line)
}

// beginnings are the letters that lines of ours begin with; noAnswer stands behind a tool's name, which may be long.
const (
	beginnings = "eEkKlLtTnNrRsS-"
	noAnswer   = ": no answer within "
)

// told is how much of a line tells whose it is, in bytes: 96 letters of any alphabet.
const told = 96 * utf8.UTFMax

// plainLetters is the beginning of a line with letters that look like ASCII's as these.
func plainLetters(s string) string {
	n := min(len(s), told)
	for i := range n {
		if s[i] >= utf8.RuneSelf {
			return strings.Map(func(r rune) rune {
				if c := plainLetter(r); c != 0 {
					return rune(c)
				}
				return r
			}, s[:n]) + s[n:]
		}
	}
	return s
}

// plainLetter is the ASCII character that r looks like; 0 for none.
func plainLetter(r rune) byte {
	switch {
	case r < utf8.RuneSelf:
		return byte(r)
	case r >= 0xff01 && r <= 0xff5e: // full width
		return byte(r - 0xff01 + '!')
	case r >= 0x1d400 && r <= 0x1d6a3: // mathematical alphabets, 26 capitals and 26 small letters each
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(r-0x1d400)%52]
	case r >= 0x2010 && r <= 0x2015 || r == 0x2212:
		return '-'
	case r == 0xa0 || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000:
		return ' '
	}
	return lookalikes[r]
}

// lookalikes are letters of other scripts that are drawn as ASCII's in common fonts (Unicode's confusables).
var lookalikes = func() map[rune]byte {
	m := map[rune]byte{}
	for ascii, others := range map[byte]string{
		'a': "аαɑ", 'A': "АΑ", 'c': "сϲ", 'C': "СϹ", 'd': "ԁ", 'D': "Ꭰ", 'e': "еҽ", 'E': "ЕΕ", 'g': "ɡ", 'h': "һ", 'H': "НΗ", 'i': "іıι", 'I': "ІΙ",
		'k': "кκ", 'K': "КΚ", 'l': "ӏǀ", 'L': "Ꮮ", 'n': "ոп", 'N': "Ν", 'o': "оοօ", 'O': "ОΟ", 'p': "рρ", 'P': "РΡ", 'r': "г", 'R': "Ꭱ", 's': "ѕ", 'S': "Ѕ",
		't': "т", 'T': "ТΤ", 'u': "υս", 'U': "Ս", 'w': "ԝ", 'x': "хχ", 'X': "ХΧ", 'y': "у", 'Y': "Υ", ':': "：ː∶꞉", '=': "꞊",
	} {
		for _, r := range others {
			m[r] = ascii
		}
	}
	return m
}()
