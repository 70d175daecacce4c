package kinds

import (
	"bytes"
	"regexp"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/markdown"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Markdown is Markdown text.
var Markdown = &Kind{
	Name:       content.Markdown,
	Ext:        "md",
	MIME:       fixed("text/markdown"),
	Sniff:      func(s *Sample) bool { return len(s.lines()) > 0 && isMarkdown(s.lines(), s.ext) },
	Summarizer: func(string, []byte) digest.Summarizer { return markdown.New() },
	Records:    record.LineSpans,
	Objects:    record.TextLines,
	RecordIs:   "a line {line, text}",
	Shares:     Shares{Says: 0.3, Shape: 0.2, Body: 0.7},
}

var (
	heading   = content.Pattern(`^ {0,3}#{1,6} +\S`)
	underline = content.Pattern(`^(={3,}|-{3,})\s*$`)
	fence     = content.Pattern("^ {0,3}(```|~~~)")
	link      = content.Pattern(`\[[^\]\n]+\]\([^)\s]+\)`)
	ruled     = content.Pattern(`^\|?[ :|-]*-{3,}[ :|-]*\|[ :|-]*$`)
	bold      = content.Pattern(`\*\*[^*\s][^*]*\*\*|__[^_\s][^_]*__`)
	item      = content.Pattern(`^ {0,3}(?:[-*+]|\d{1,3}[.)]) +\S`)
	inline    = content.Pattern("`[^`\n]+`")
	codeStart = content.Pattern(`^(?:#!|//|/\*|<\?|"""|package |import |from .* import|use |using )`)
)

// construct is one construct of Markdown.
type construct int

const (
	noConstruct construct = iota
	headingLine
	underlineLine // a heading by the line below it
	fenceLine
	ruleLine // of a table
	linkSpan
	boldSpan
	itemLine
	codeSpan
	constructs
)

// minWeight is the weight of constructs that makes a text Markdown: two that plain text lacks (2 each), one of them and
// both that plain text may have too (1 each), or a heading and one of the latter.
const minWeight = 4

// constructWeights has the weight of each construct, and the minimum number of lines that must have it.
var constructWeights = [constructs]struct{ weight, least int }{
	headingLine:   {weight: 3, least: 1},
	underlineLine: {weight: 2, least: 1},
	fenceLine:     {weight: 2, least: 2},
	ruleLine:      {weight: 2, least: 1},
	linkSpan:      {weight: 2, least: 1},
	boldSpan:      {weight: 2, least: 1},
	itemLine:      {weight: 1, least: 2},
	codeSpan:      {weight: 1, least: 1},
}

// isMarkdown decides by the extension, else by the constructs in the first 400 lines, unless they look like a program.
func isMarkdown(all [][]byte, ext string) bool {
	switch ext {
	case ".md", ".markdown", ".mdx":
		return true
	case "", ".txt", ".text":
	default:
		return false // another file type
	}
	if codeStart().Match(bytes.TrimSpace(all[0])) {
		return false
	}
	lines := markdownLines(all[:min(len(all), 400)])
	with, filled, program := lines.count()
	if program*4 > filled {
		return false
	}
	weight := 0
	for c, w := range constructWeights {
		if with[c] >= w.least {
			weight += w.weight
		}
	}
	return weight >= minWeight || with[headingLine] > 1 && with[headingLine]*2 >= filled/8
}

// markdownLines are the lines of a text that may be Markdown.
type markdownLines [][]byte

func (all markdownLines) blank(i int) bool {
	return i < 0 || i >= len(all) || len(bytes.TrimSpace(all[i])) == 0
}

// count returns the number of lines with each construct. filled and program are the numbers of lines outside of fenced
// blocks that are not blank, and of those that look like statements of a program.
func (all markdownLines) count() (with [constructs]int, filled, program int) {
	fenced := false
	for i, l := range all {
		switch {
		case all.blank(i):
			continue
		case isFence(l):
			with[fenceLine]++
			fenced = !fenced
			continue
		case fenced:
			continue
		}
		filled++
		if ofProgram(l) {
			program++
		}
		with[all.block(i)]++
		for _, span := range spans {
			if (bytes.IndexByte(l, span.sign) >= 0 || bytes.IndexByte(l, span.or) >= 0) && span.pattern().Match(l) {
				with[span.is]++
			}
		}
	}
	return with, filled, program
}

// spans are the constructs within a line. A line that has neither sign has none.
var spans = []struct {
	is       construct
	sign, or byte
	pattern  func() *regexp.Regexp
}{
	{linkSpan, '[', '[', link},
	{boldSpan, '*', '_', bold},
	{codeSpan, '`', '`', inline},
}

// block returns the construct that takes all of line i, which is not blank. A heading counts only next to a blank line,
// because comments of many languages begin with "# ".
func (all markdownLines) block(i int) construct {
	l := all[i]
	switch start := firstSign(l); {
	case start == '#' && heading().Match(l) && all.blank(i-1) && (all.blank(i+1) || isFence(all[i+1])):
		return headingLine
	case (start == '=' || start == '-') && underline().Match(l) && all.blank(i-2) && !all.blank(i-1) && all.blank(i+1):
		return underlineLine
	case i > 0 && bytes.IndexByte(l, '|') >= 0 && bytes.IndexByte(all[i-1], '|') >= 0 && ruled().Match(l):
		return ruleLine
	case start <= '9' && item().Match(l):
		return itemLine
	}
	return noConstruct
}

func isFence(l []byte) bool {
	start := firstSign(l)
	return (start == '`' || start == '~') && fence().Match(l)
}

// firstSign returns the first byte of a line that is no space, 0 if there is none.
func firstSign(l []byte) byte {
	if l = bytes.TrimLeft(l, " "); len(l) > 0 {
		return l[0]
	}
	return 0
}

// ofProgram reports whether a line looks like a statement of any programming language.
func ofProgram(l []byte) bool {
	l = bytes.TrimSpace(l)
	switch l[len(l)-1] {
	case '{', '}', ';':
		return true
	}
	return mayState(l) && statement().Match(l[:min(len(l), 64)]) || bytes.Contains(l, []byte(" = ")) ||
		bytes.Contains(l, []byte(" := "))
}

// mayState is a cheap pre-filter for statement: it compares the first two bytes, because matching the regular
// expression on every line is expensive.
func mayState(l []byte) bool {
	return l[0] == '@' || bytes.Contains([]byte("as de cl fu im fr re if el fo wh tr ex ra"), l[:min(2, len(l))])
}

var statement = content.Pattern(
	`^(?:(?:async )?def \w|class \w+[(:]|func |import \w|from [\w.]+ import |return\b|if .*:$|el(?:se|if)\b.*:$|for .*:$|while .*:$|try:$|except\b.*:$|raise \w|@\w)`,
)
