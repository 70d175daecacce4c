package outline

import (
	"bytes"
	"regexp"
	"strings"
)

// maxMisses limits how often a text is searched in vain for the end of a string or comment.
const maxMisses = 16

// lexeme is a form of comments and strings.
type lexeme struct {
	open, end string // end is part of the token, except for a line break
	flags     string // e: a backslash escapes a character; l: it ends with its line at the latest; t: ${} nests
}

var (
	slashes  = []lexeme{{"//", "\n", ""}, {"/*", "*/", ""}}
	quotes   = append(slashes[:2:2], lexeme{`"`, `"`, "el"}, lexeme{"'", "'", "el"})
	scripts  = append(quotes[:4:4], lexeme{"`", "`", "et"})
	clang    = append([]lexeme{{`R"(`, `)"`, ""}, {"\n#", "\n", "e"}}, quotes...)
	rust     = []lexeme{{`r"`, `"`, ""}, {`r#"`, `"#`, ""}, {`r##"`, `"##`, ""}, {`'"'`, "", ""}, {`'\"'`, "", ""}}
	multiple = append(slashes[:2:2], lexeme{`"`, `"`, "e"}, lexeme{"'", "'", "e"})
	tokens   = map[string][]lexeme{
		"javascript": scripts, "typescript": scripts, "c": clang, "c++": clang, "rust": append(rust, multiple[:3]...),
		"java":   append([]lexeme{{`"""`, `"""`, "e"}}, quotes...),
		"c#":     append([]lexeme{{`"""`, `"""`, ""}, {`@"`, `"`, ""}, {`@$"`, `"`, ""}, {"\n#", "\n", ""}}, quotes...),
		"php":    append([]lexeme{{"?>", "<?", ""}, {"#[", "", ""}, {"#", "\n", ""}, {"`", "`", "el"}}, multiple...),
		"python": {{"#", "\n", ""}, {`"""`, `"""`, "e"}, {"'''", "'''", "e"}, {`"`, `"`, "el"}, {"'", "'", "el"}},
		"ruby":   {{"\n=begin", "\n=end", ""}, {"#", "\n", ""}, {`"`, `"`, "el"}, {"'", "'", "el"}, {"`", "`", "el"}},
	}
	heredoc = pattern("^<<(?:<[ \t]*|[~-]|)[\"'`]?([A-Z_]\\w*)")
)

// mask returns the code of a text: its comments and strings are replaced by spaces, line breaks are kept.
func mask(lang string, text []byte) string {
	if lang == "php" {
		text = append([]byte("?>"), text...) // a file of PHP begins outside of code
	}
	out, forms, starts, last, misses := bytes.Clone(text), tokens[lang], "/<", byte(0), 0
	scripted := strings.HasSuffix(lang, "script")
	for _, t := range forms {
		starts += t.open[:1]
	}
	for i := 0; i < len(text); {
		k := bytes.IndexAny(text[i:], starts)
		if k < 0 {
			break
		}
		if before := bytes.TrimRight(text[i:i+k], " \t\n"); len(before) > 0 {
			last = before[len(before)-1]
		}
		i += k
		n := 0
		for j := 0; j < len(forms) && n == 0; j++ {
			if t := forms[j]; bytes.HasPrefix(text[i:], []byte(t.open)) {
				n = t.length(text[i:], misses >= maxMisses)
			}
		}
		window := text[i:min(len(text), i+maxName)]
		if n == 0 && (lang == "ruby" || lang == "php") && misses < maxMisses && heredoc().Match(window) {
			n = -1
			end := regexp.MustCompile(`\n[ \t]*` + string(heredoc().FindSubmatch(window)[1]) + `\b`)
			if loc := end.FindIndex(text[i:]); loc != nil {
				n = loc[1]
			}
		} else if n == 0 && text[i] == '/' && scripted && strings.IndexByte("(,=:[!&|?{;", last) >= 0 {
			n = lexeme{"/", "/", "el"}.length(text[i:], false) // a regular expression: no operand precedes it
		}
		if n < 0 {
			misses++
			n = lexeme{"", "\n", "l"}.length(text[i:], true)
		}
		for j := i; j < i+n; j++ {
			if text[j] != '\n' {
				out[j] = ' '
			}
		}
		last = text[i]
		i += max(n, 1)
	}
	return string(out)
}

// length returns the length of the token that a text begins with; -1 if it has no end. inLine ends it with its line.
func (t lexeme) length(text []byte, inLine bool) int {
	if t.end == "" {
		return len(t.open)
	}
	escapes, inLine := strings.Contains(t.flags, "e"), inLine || strings.Contains(t.flags, "l")
	template, nested := strings.Contains(t.flags, "t"), []byte(nil) // the open { and ` of a template
	for n := len(t.open); n < len(text); n++ {
		top := len(nested) - 1
		switch c := text[n]; {
		case escapes && c == '\\':
			n++
		case c == '\n' && (inLine || t.end == "\n"):
			return n
		case template && top >= 0 && (c == '}' && nested[top] == '{' || c == '`' && nested[top] == '`'):
			nested = nested[:top]
		case template && (c == '{' && (text[n-1] == '$' || top >= 0 && nested[top] == '{') || c == '`' && top >= 0):
			nested = append(nested, c)
		case c == t.end[0] && bytes.HasPrefix(text[n:], []byte(t.end)):
			return n + len(t.end)
		}
	}
	if inLine || t.end == "\n" {
		return len(text)
	}
	return -1
}
