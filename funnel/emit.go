package funnel

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// The words by which a model knows this server's own lines.
const (
	notice   = "LARGE OUTPUT DETECTED: "
	nextWord = "next: "
	noteWord = "note: "
	errWord  = "error: "
)

// maxAnswer bounds one block of text, in bytes: a common client takes no more than 1 MB.
const maxAnswer = 1_000_000

// say adds a block of text to the answer and counts it. It is the one place
// through which text reaches the model: what hidden characters are left are made visible here.
func (c *call) say(text string) {
	text = content.Visible(c.masked(text), false)
	c.answer.Blocks = append(c.answer.Blocks, Block{Text: text})
	c.shown += int64(c.f.o.Counter.Count(text))
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
	alone     place = iota // as an answer of its own
	inRow                  // among the rows of a page, whose header, notes and errors stand beside them
	inReceipt              // within a receipt: each word that begins a line of one is ours
)

// foreign makes a text that others wrote fit to be shown: hidden characters
// are made visible and lines that imitate ours are marked.
func foreign(s string, json bool, at place) string {
	return defuse(content.Visible(s, json), at)
}

// defuse marks each line that imitates a line of ours with ">" before it.
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

// Lines of ours, by how they begin. Behind "next", "total" and the like ordinary texts have other things than we do.
var (
	imitation = regexp.MustCompile(`(?i)^(large\s+output\s+detected` +
		`|---\s*(head|tail)\s*:|---\s*\d+\s+lines?\s+not\s+shown` +
		`|showing\s+(none\b|\d+\s*-\s*\d+\s+of\b)|not\s+shown\s*:\s*\d+\s+token` +
		`|kept\s+whole\s+as\s+obs:` +
		`|total\s*:\s*~?\d+\s+(lines?,\s*\d+\s+char|bytes?\s*;\s*binary)|next\s*:\s*(direct\b|\w+\s*\{))`)
	imitationStrict = regexp.MustCompile(`(?i)^(large\s+output\s+detected|---\s*(head|tail)\s*:|---\s*\d+\s+lines?\s+not\s+shown` +
		`|showing\s+(none\b|\d+\s*-\s*\d+\s+of\b)|not\s+shown\s*:|kept\s+whole\s+as\s+obs:|(total|shape|saved\s+to|next|note)\s*:)`)
	// Compilers write such lines too, so only in their exact shape, and only where ours stand beside them.
	imitationInRow = regexp.MustCompile(`^(note: |error: |kept whole as |==> .+ <==)`)
)

func imitates(line string, at place) bool {
	if at == inRow && imitationInRow.MatchString(strings.TrimLeft(line, ">")) {
		return true
	}
	line = strings.TrimLeftFunc(line, func(r rune) bool { return r == '>' || unicode.IsSpace(r) })
	if line == "" || strings.IndexByte("kKlLtTnNsS-", line[0]) < 0 {
		return false
	}
	if at == inReceipt {
		return imitationStrict.MatchString(line)
	}
	return imitation.MatchString(line)
}
