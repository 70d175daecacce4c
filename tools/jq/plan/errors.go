package plan

import (
	"strings"
	"unicode/utf8"
)

// locate shows the name that an error of gojq mentions in the filter, since gojq reports no position. It returns "" if
// the name is not found.
func (p *program) locate(message string) string {
	what, name, found := strings.Cut(message, ": ")
	arity := -1
	switch {
	case strings.HasPrefix(message, "input(s)"):
		name, found = "input", true
		if at := word(p.filter, name, -1); at < 0 {
			name = "inputs"
		}
	case what == "function not defined":
		n, count, _ := strings.Cut(name, "/")
		if name = n; count != "" {
			arity = int(count[0] - '0')
		}
	case strings.HasPrefix(message, "cannot load module"):
		name = "import"
		if at := word(p.filter, name, -1); at < 0 {
			name = "include"
		}
	}
	if !found {
		return ""
	}
	if at := word(p.filter, name, arity); at >= 0 {
		return "\n" + caret(p.filter, at)
	}
	return ""
}

// word returns the index of a name in a filter, as a whole word outside of string literals, -1 if it is not found. With
// arity 0 the name must have no arguments, above 0 it must have some; with -1 both are accepted.
func word(filter, name string, arity int) int {
	part := func(c byte) bool { return c == '_' || c == '$' || c == '@' || identifier("a"+string(rune(c))) }
	quoted := 0 // 1 inside a string, 0 in code and inside \( … )
	var resume []int
	for i := 0; i < len(filter); i++ {
		switch c := filter[i]; {
		case quoted == 1 && c == '\\' && i+1 < len(filter) && filter[i+1] == '(':
			resume, quoted = append(resume, 0), 0
			i++
			continue
		case quoted == 1 && c == '\\':
			i++
			continue
		case c == '"':
			quoted = 1 - quoted
			continue
		case quoted == 1:
			continue
		case c == '(' && len(resume) > 0:
			resume[len(resume)-1]++
		case c == ')' && len(resume) > 0:
			if resume[len(resume)-1]--; resume[len(resume)-1] < 0 {
				resume, quoted = resume[:len(resume)-1], 1
				continue
			}
		}
		end := i + len(name)
		if !strings.HasPrefix(filter[i:], name) || i > 0 && (part(filter[i-1]) || filter[i-1] == '.') || end < len(filter) &&
			part(filter[end]) {
			continue
		}
		called := strings.HasPrefix(strings.TrimLeft(filter[end:], " \t\r\n"), "(")
		if arity < 0 || called == (arity > 0) {
			return i
		}
	}
	return -1
}

// caret returns the line of a filter around the byte at, and a line with ^ below that byte.
func caret(filter string, at int) string {
	at = max(0, min(at, len(filter)))
	start := strings.LastIndexByte(filter[:at], '\n') + 1
	end := len(filter)
	if i := strings.IndexByte(filter[at:], '\n'); i >= 0 {
		end = at + i
	}
	const before, after = 100, 60 // bytes: an error repeats at most 200 bytes of its input
	left, right := "", ""
	if at-start > before {
		start, left = at-before, "…"
		for !utf8.RuneStart(filter[start]) {
			start++
		}
	}
	if end-at > after {
		end, right = at+after, "…"
		for !utf8.RuneStart(filter[end]) {
			end--
		}
	}
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, left+filter[start:at])
	return "    " + line + strings.ReplaceAll(filter[at:end], "\t", " ") + right + "\n    " + strings.Repeat(
		" ", utf8.RuneCountInString(line),
	) + "^"
}
