package kinds

import (
	"bytes"

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
	Summarizer: func(string, []byte) digest.Summarizer { return withoutMark(markdown.New()) },
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

// isMarkdown requires two features that Markdown has and plain text lacks. A heading counts only next to a blank
// line, because comments of many languages begin with "# ".
func isMarkdown(all [][]byte, ext string) bool {
	switch ext {
	case ".md", ".markdown", ".mdx":
		return true
	case "", ".txt", ".text":
	default:
		return false // another file type
	}
	if first := bytes.TrimSpace(all[0]); codeStart().Match(first) {
		return false
	}
	all = all[:min(len(all), 400)]
	var headings, fences, links, rules, bolds, items, codes, underlines, filled, program int
	blank := func(i int) bool { return i < 0 || i >= len(all) || len(bytes.TrimSpace(all[i])) == 0 }
	has := func(l []byte, c byte) bool { return bytes.IndexByte(l, c) >= 0 }
	fenced := false
	for i, l := range all {
		if blank(i) {
			continue
		}
		start := bytes.TrimLeft(l, " ")[0]
		if (start == '`' || start == '~') && fence().Match(l) {
			fences++
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		filled++
		if ofProgram(l) {
			program++
		}
		switch {
		case start == '#' && heading().Match(l) && blank(i-1) && (blank(i+1) || fence().Match(all[i+1])):
			headings++
		case (start == '=' || start == '-') && underline().Match(l) && !blank(i-1) && blank(i+1) && blank(i-2):
			underlines++
		case has(l, '|') && ruled().Match(l) && i > 0 && has(all[i-1], '|'):
			rules++
		case (start < '0' || start <= '9') && item().Match(l):
			items++
		}
		if has(l, '[') && link().Match(l) {
			links++
		}
		if (has(l, '*') || has(l, '_')) && bold().Match(l) {
			bolds++
		}
		if has(l, '`') && inline().Match(l) {
			codes++
		}
	}
	if program*4 > filled {
		return false
	}
	strong := 0
	for _, n := range []int{headings, fences / 2, links, rules, bolds, underlines} {
		if n > 0 {
			strong++
		}
	}
	weak := 0
	for _, n := range []int{items / 2, codes} {
		if n > 0 {
			weak++
		}
	}
	return headings > 1 && headings*2 >= filled/8 || strong >= 2 || headings > 0 && weak > 0 || strong == 1 && weak == 2
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
