package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Position is the place of untrusted text in an answer. It determines which lines of ours that text could imitate.
type Position int

// The positions.
const (
	Standalone Position = iota // an answer of its own, before or after notes and errors
	InRow                      // a row of a page that also has a header, notes and errors
	InReceipt                  // inside a receipt, whose own words each begin a line
)

// escapeImitations puts ">" before the words of each line that imitates a line of this server, behind its indentation:
// the depth of a name in a tree stays as it was.
//
// So every unmarked line of an answer that begins like one of ours is ours. A line that imitates ours behind one or
// more ">" gets one more, as mail quotes "From ". To restore the text, remove one ">" from each such line.
func escapeImitations(s string, at Position) string {
	var b strings.Builder
	done := 0 // bytes of s that are in b
	for from := 0; from < len(s); {
		end := len(s)
		if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
			end = from + i + 1
		}
		if imitates(s[from:end], at) {
			words := from + len(s[from:end]) - len(strings.TrimLeft(s[from:end], " \t"))
			b.WriteString(s[done:words])
			b.WriteByte('>')
			done = words
		}
		from = end
	}
	if done == 0 && b.Len() == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// The beginnings of this server's own lines. Few other lines begin as imitation and imitationExact match, so each
// such line is marked. Inside a receipt every line that begins with a word of a receipt is marked (imitationStrict);
// elsewhere "next", "total" and the like often begin ordinary lines.
var (
	// Compilers write such lines too, so only the exact form counts.
	imitationExact = content.Pattern(
		`^(note: |error: |kept (whole|in part) as |SAVED (in part )?as |not kept \(|no (rows|output)$|\w+: no answer within )`,
	)
	imitation = content.Pattern(`(?i)^(large\s+output\s+detected` +
		`|---\s*(head|tail)\s*:|---\s*\d+\s+lines?\s+not\s+shown` +
		`|showing\s+(none\b|the\s+first\s+\d|\d+\s*-\s*\d+\s+of\b)|not\s+shown\s*:\s*\d+\s+token` +
		`|kept\s+whole\s+as\s+obs:|saved\s+(in\s+part\s+)?as\s+obs:` +
		`|total\s*:\s*~?\d+\s+(lines?,\s*\d+\s+char|bytes?\s*;\s*binary)|next\s*:\s*(direct\b|\w+\s*\{))`)
	imitationStrict = content.Pattern(`(?i)^(large\s+output\s+detected|---\s*(head|tail)\s*:|---\s*\d+\s+lines?\s+not\s+shown` +
		`|showing\s+(none\b|the\s+first\s+\d|\d+\s*-\s*\d+\s+of\b)|not\s+shown\s*:|(kept|read)\s+[a-z ]+\s(as\s+obs:|from\s)|not\s+kept\b` +
		`|(total|shape|saved\s+to|next|note|error)\s*:)`)
	imitationInRow = content.Pattern(`^==> .+ <==`)
)

// imitates reports whether the words of a line could be mistaken for a line of ours, even after marks and spaces or in
// look-alike letters.
func imitates(line string, at Position) bool {
	line = strings.TrimRight(strings.TrimLeft(line, ">"), "\r\n")
	if at == InRow && imitationInRow().MatchString(line) {
		return true
	}
	bare := strings.TrimLeftFunc(line, func(r rune) bool { return r == '>' || unicode.IsSpace(r) })
	if bare == "" || !firstLetterMatches(bare) {
		return false
	}
	line, bare = foldLookalikes(line), foldLookalikes(bare)
	return matchesPattern(line, bare, at)
}

// matchesPattern is the expensive check of a line that passed firstLetterMatches.
func matchesPattern(line, bare string, at Position) bool {
	return imitationExact().MatchString(line) || imitation().MatchString(bare) || at == InReceipt &&
		imitationStrict().MatchString(bare)
}

// firstLetterMatches reports whether a line may be one of ours by its first letter; most are not.
func firstLetterMatches(line string) bool {
	c := line[0]
	if c >= utf8.RuneSelf {
		r, _ := utf8.DecodeRuneInString(line)
		c = foldLookalike(r)
	}
	return c != 0 && strings.IndexByte(firstLetters, c) >= 0 || maybeTimeout(line)
}

// maybeTimeout reports whether a line may begin with a tool name and "no answer within", look-alikes included.
func maybeTimeout(line string) bool {
	rest := timeoutWords
	for _, r := range line[:min(len(line), maxInspected)] {
		c := foldLookalike(r)
		if c == rest[0] {
			if rest = rest[1:]; rest == "" {
				return true
			}
			continue
		}
		name := c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !name || len(rest) < len(timeoutWords) {
			return false
		}
	}
	return false
}

const (
	firstLetters = "eEkKlLtTnNrRsS-"     // of our lines
	timeoutWords = ": no answer within " // after a tool's name
)
