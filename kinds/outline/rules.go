package outline

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// rule finds a declaration. The last group of its pattern is the name, the one before it the kind if kind is "".
type rule struct {
	kind string
	re   func() *regexp.Regexp
}

const (
	identifier  = `([\pL_$][\pL\pN_$]*)`
	annotations = `^(?:@[\w.]+(?:\([^()]*\))?\s+|\[[^\]]*\]\s*)*((?:[\w-]+\s+)*)`
	curly       = annotations + `(class|@?interface|enum|record|struct|namespace)\s+(\w+)`
	// method needs a type before the name, which a constructor does not have.
	method = annotations + `()(?:<[^()]*>\s*)?(?:\([^()]*\)|[\w.]+)[\w.<>,?\[\]\s&@*]*[\s>\]?*](\w+)\s*` +
		`(?:<[^()]*>\s*)?\(`
)

var (
	// The patterns of nested have three groups: the modifiers, the kind and the name.
	nestedRules = map[string][]rule{
		"python": {{"", pattern(`^()(class|def|async\s+def)\s+` + identifier)}},
		"ruby": {{"", pattern(`^()(class|module|def)\s+(?:self\.|[A-Z]\w*\.)?(\w+(?:::\w+)*[?!=]?)`)},
			{"", pattern(`^()(class\s*<<)()`)}},
		"php": {{"", pattern(`^((?:(?:public|static|final|abstract|readonly)\s+)*)` +
			`(class|interface|trait|enum|function)\s+&?\s*(\w+)`)}, {"", pattern(`^()(namespace|if)\b()`)}},
		"rust": {{"", pattern(`^((?:pub(?:\s*\([^()]*\))?\s+)?)(?:(?:default|unsafe|const|async|extern|auto)\s+)*` +
			`(fn|struct|enum|union|trait|mod|const|static|type)\s+(?:mut\s+|r#)?(\w+)`)},
			{"", pattern(`^()(?:unsafe\s+)?(impl)\b(?:\s*<.*?[^-]>+)?\s+(?:[^{]*?\sfor\s+)?(?:\w+::)*(\w+)`)}},
		"java": {{"", pattern(curly)}, {"", pattern(method)}},
		"c#":   {{"", pattern(curly)}, {"", pattern(method)}},
	}
	exportRules = []rule{
		{"", pattern(`^export\s+(?:default\s+)?(?:declare\s+)?(?:(?:abstract|async)\s+)*(const\s+enum|function|class|` +
			`interface|enum|type|namespace|module|const|let|var)\b\s*\*?\s*` + identifier)},
		{"default", pattern(`^(?:export\s+default\s|module\.exports\s*=|export\s*=)\s*` + identifier + `\s*;?$`)},
		{"default", pattern(`^export\s+(default)\b`)},
		{"export", pattern(`^(?:module\.)?exports\.` + identifier + `\s*=(?:[^=]|$)`)},
		{"export", pattern(`^export\s*\*\s*as\s+` + identifier)},
	}
	localRules = []rule{{"", pattern(`^(?:declare\s+)?(?:(?:abstract|async)\s+)*(function|class)\b\s*\*?\s*` +
		identifier)}}
	listStart = pattern(`^(?:export\s+(?:type\s+|const\s+|let\s+|var\s+)?|module\.exports\s*=\s*)\{`)
	listItem  = pattern(`^\s*(?:type\s+)?(?:[\w$]+\s+as\s+)?([\w$]+)\s*(?::\s*([\w$.]+))?\s*$`)
	cRules    = []rule{
		{"", pattern(`^(?:template\s*<[^{}]*>\s*)?(?:typedef\s+)?(struct|class|enum|union|enum\s+class)\s+` +
			`(?:[A-Z_\d]+\s+)?(\w+)\s*(?:final\s*)?(?::[^:].*|\{.*)?$`)},
		{"type", pattern(`^typedef\b[^(]*?(\w+)\s*(?:\[[^\]]*\]\s*)*;`)},
		{"type", pattern(`^typedef\b[^(]*\(\s*\*\s*(\w+)\s*\)`)},
		{"type", pattern(`^(?:template\s*<[^{}]*>\s*)?using\s+(\w+)\s*=`)},
		{"func", pattern(`^[A-Za-z_][\w\s*&:<>,]*[\s*&>]((?:\w+::)*~?[A-Za-z_]\w*)\s*\(`)},
	}
	cClose = pattern(`^\}[\s*]*(\w*)`)
	cWords = pattern(`^[A-Za-z_][\w\s*&:<>,]*$`)
	notC   = pattern(`^(?:.*[\s*&])?(?:static|typedef|return|if|else|for|while|switch|case|goto|throw|` +
		`friend|operator)\b|\b__(?:attribute__|declspec|[A-Z_]+)\s*\($`)
	kinds = map[string]string{
		"def": "func", "async def": "func", "function": "func", "fn": "func", "mod": "module", "namespace": "module",
		"let": "var", "static": "var", "const enum": "enum", "enum class": "enum",
		"@interface": "interface", "": "func",
	}
	separators = map[string]string{"rust": "::", "ruby": "::", "python": ".", "java": ".", "c#": ".", "php": "."}
	public     = pattern(`\bpublic\b`)
	notPublic  = pattern(`\b(?:private|protected|internal|delegate|operator)\s`)
	skipped    = pattern(`^(?:[{}()\]:,&|]|end\b|where\b|else\b)`)
	closed     = pattern(`;$|[;\s]end$|\{.*\}$`)
)

// lines calls f with the number of each line that has code, its indentation, and the line without its blanks.
func lines(code string, f func(n, indent int, line string)) {
	n := 0
	for line := range strings.SplitSeq(code, "\n") {
		n++
		line = strings.TrimRight(line[:min(len(line), maxLine)], " \t\r\f")
		if word := strings.TrimLeft(line, " \t"); word != "" {
			f(n, len(line)-len(word), word)
		}
	}
}

// match returns the kind and name of the declaration that a line begins, and the groups of its pattern.
func match(rules []rule, line string) (kind, name string, groups []string) {
	for _, r := range rules {
		if m := r.re().FindStringSubmatch(line); m != nil {
			if kind = r.kind; kind == "" {
				kind = strings.Join(strings.Fields(m[len(m)-2]), " ")
				kind = cmp.Or(kinds[kind], kind)
			}
			return kind, m[len(m)-1], m
		}
	}
	return "", "", nil
}

// container is a declaration that has members.
type container struct {
	kind, name      string
	indent, members int  // the indentation of the declaration and of its members
	hidden          bool // the members do not count
}

// nested finds the types and functions of a language whose members are indented, and the methods of exported types.
func (o *Outline) nested(code string) {
	stack := []container{{indent: -1}}
	lines(code, func(n, indent int, line string) {
		if skipped().MatchString(line) {
			return
		}
		for indent <= stack[len(stack)-1].indent {
			stack = stack[:len(stack)-1]
		}
		in := &stack[len(stack)-1]
		if in.indent >= 0 && (in.members == 0 || indent < in.members) {
			in.members = indent
		}
		if indent > in.members {
			return
		}
		ruby := o.Language == "ruby"
		if ruby && (line == "private" || line == "protected" || line == "public") {
			in.hidden = line != "public"
		}
		kind, name, m := match(nestedRules[o.Language], line)
		if m == nil {
			return
		}
		if name == "" || m[2] == "namespace" {
			stack = append(stack, container{in.kind, in.name, indent, 0, in.hidden && !ruby})
			return
		}
		full, private := name, in.hidden && (!ruby || kind == "func" && strings.HasPrefix(line, "def "+name))
		hidden := private || !o.exported(name, m, in)
		if in.name != "" && (kind != "func" || in.kind == "module" && !ruby) {
			full = content.ClipEnd(in.name+separators[o.Language]+name, maxName)
		} else if in.name != "" {
			kind, full = "method", in.name+"."+name
		}
		if !hidden && kind != "impl" && (kind != "func" || m[2] != "") {
			o.add(kind, full, n)
		}
		if kind != "func" && kind != "method" && !closed().MatchString(line) {
			stack = append(stack, container{kind, full, indent, 0, hidden})
		}
	})
}

// exported reports whether a declaration is public by its name or modifiers, or as a member of an interface.
func (o *Outline) exported(name string, groups []string, in *container) bool {
	switch o.Language {
	case "rust":
		return strings.TrimSpace(groups[1]) == "pub" || groups[2] == "impl" || in.kind == "trait" && groups[1] == ""
	case "python", "ruby":
		return name[0] != '_'
	case "php":
		return !strings.HasPrefix(name, "__")
	}
	return (in.kind == "interface" || public().MatchString(groups[1])) && !notPublic().MatchString(groups[0])
}

// script finds the exports of JavaScript and TypeScript. A text without any has its top-level functions and classes.
func (o *Outline) script(code string) {
	for _, rules := range [][]rule{exportRules, localRules} {
		list := "" // the beginning of export {…}, which the line is in
		lines(code, func(n, indent int, line string) {
			if start := listStart().FindString(line); start != "" && indent == 0 {
				list, line = start, line[len(start):]
			}
			if list != "" {
				items, _, end := strings.Cut(line, "}")
				for item := range strings.SplitSeq(items, ",") {
					if m := listItem().FindStringSubmatch(item); m != nil && list[0] == 'e' {
						o.add("export", cmp.Or(m[2], m[1]), n) // {name: variable} of export const
					} else if m != nil {
						o.add("export", m[1], n)
					}
				}
				if end {
					list = ""
				}
			} else if kind, name, m := match(rules, line); m != nil && indent == 0 {
				o.add(kind, name, n)
			}
		})
		if len(o.Symbols) > 0 {
			return
		}
	}
}

// c finds the functions and types of C and C++ that begin at column 0 and are not static.
func (o *Outline) c(code string) {
	before, end, typedef := "", 0, false // a line that may be the type of a function; its number; a typedef is open
	lines(code, func(n, indent int, line string) {
		if indent > 0 || line[0] == '{' {
			return
		}
		if m := cClose().FindStringSubmatch(line); m != nil {
			if k := len(o.Symbols); typedef && m[1] != "" && (k == 0 || o.Symbols[k-1].Name != m[1]) {
				o.add("type", m[1], n)
			}
			typedef = false
			return
		}
		typedef = strings.HasPrefix(line, "typedef") && !strings.HasSuffix(line, ";")
		kind, name, m := match(cRules, line)
		if m == nil && n == end+1 {
			kind, name, m = match(cRules, before+" "+line)
		}
		if m != nil && (kind != "func" || !notC().MatchString(m[0])) {
			if i := strings.LastIndex(name, "::"); i >= 0 {
				kind, name = "method", name[:i]+"."+name[i+2:]
			}
			o.add(kind, name, n)
		}
		if m == nil && cWords().MatchString(line) {
			before, end = line, n
		}
	})
}
