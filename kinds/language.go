package kinds

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// languageHead is how much of a text is looked at, in bytes, to tell languages apart.
const languageHead = 8 << 10

// Language returns the language of a text file; "Text" if it is unknown. Its name decides; the beginning of its text
// where several languages share a suffix; the program after "#!" where the name says nothing; then its kind.
func Language(name string, head []byte, kind content.Kind) string {
	base := strings.ToLower(path.Base(name))
	suffix := path.Ext(base)
	head = bytes.TrimPrefix(head[:min(len(head), languageHead)], []byte("\ufeff"))
	language := content.LanguageOf(base)
	switch stem, _, _ := strings.Cut(base, "."); {
	case slices.Contains(stems, stem) && (language == "" || dockerfile().Match(head)): // Dockerfile.dev, Dockerfile.go
		return content.LanguageOf(stem)
	case xml().Match(head) && !slices.Contains(markup, language):
		return "XML"
	case language == "":
		return cmp.Or(interpreter(head), kindLanguages[kind], "Text")
	}
	if all := rivals[suffix]; all != nil && len(head) > 0 {
		marks := lineMarks(head)
		for _, r := range all {
			if slices.ContainsFunc(strings.Fields(r.marks), func(m string) bool { return m == "*" || marks[m] }) {
				return r.language
			}
		}
	}
	return language
}

var (
	stems      = []string{"dockerfile", "containerfile", "makefile", "jenkinsfile"}
	dockerfile = content.Pattern(`^(?:[ \t]*(?:#.*)?\n)*(?:FROM|ARG)[ \t]`)
	xml        = content.Pattern(`^\s*<(?:\?xml|(?:!DOCTYPE )?TS)\b`) // and the translations of Qt
)

// markup are languages whose texts may begin as XML does.
var markup = []string{"HTML", "PHP", "SVG", "Svelte", "Vue"}

// rivals are the languages that share a suffix with the one in the table, each with words that only its lines begin
// with, or signs that only they have. The first one with such a line counts; * is in any text.
var rivals = map[string][]struct{ language, marks string }{
	".h": {
		{"Objective-C", "@interface @protocol @class @end @import @property #import NS_ASSUME_NONNULL_BEGIN"},
		{"C++", "class template namespace using public: private: protected: virtual friend explicit constexpr :: " +
			"#include<> enum_class virtual_ constexpr_ nullptr"},
	},
	".m": {
		{"Objective-C", "@interface @implementation @protocol @class @import @end #import #include #define #pragma #if " +
			"#ifdef #ifndef // int void static extern typedef"},
		{"Mercury", ":-"}, {"Mathematica", "(*"}, {"MATLAB", "*"},
	},
	".pl":  {{"Perl", "use package my our sub require local print printf foreach while if $ @ #! =pod =head1"}, {"Prolog", ":- % %%"}},
	".pro": {{"QMake", "QT TEMPLATE CONFIG SOURCES TARGET HEADERS"}, {"Prolog", ":-"}},
	".d":   {{"Makefile", ".o:"}},
	".fs":  {{"GLSL", "#version precision uniform varying"}, {"Forth", "\\"}},
	".v":   {{"Coq", "Require Theorem Lemma Fixpoint Inductive Definition"}, {"V", "fn pub import struct"}},
	".r":   {{"Rebol", "REBOL"}},
	".cls": {{"TeX", "\\N \\P %"}, {"Visual Basic", "VERSION Attribute"}},
}

// signs tell languages apart wherever they stand in a line; _ is a blank.
var signs = []string{"::", ":-", ".o:", "public:", "enum_class", "virtual_", "constexpr_", "nullptr"}

// lineMarks returns the first words of lines outside of block comments, or their first one and two signs, and signs
// anywhere in them.
func lineMarks(head []byte) map[string]bool {
	marks := map[string]bool{}
	comment := false
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if comment {
			comment = !bytes.Contains(line, []byte("*/"))
			continue
		}
		start := bytes.LastIndex(line, []byte("/*"))
		if comment = start >= 0 && !bytes.Contains(line[start:], []byte("*/")); start == 0 {
			continue
		}
		word := line[:len(line)-len(bytes.TrimLeftFunc(line, func(r rune) bool {
			return r == '@' || r == '#' || r == '_' || r == ':' || r == '=' || unicode.IsLetter(r) || unicode.IsDigit(r)
		}))]
		for _, mark := range [][]byte{word, line[:min(len(line), 1)], line[:min(len(line), 2)]} {
			marks[string(mark)] = true
		}
		code, _, _ := bytes.Cut(line, []byte("//"))
		code, _, _ = bytes.Cut(code, []byte("/*"))
		if string(word) == "#include" && bytes.Contains(code, []byte("<")) && !bytes.Contains(code, []byte(".")) {
			marks["#include<>"] = true // of C++: <vector>
		}
		for _, sign := range signs {
			marks[sign] = marks[sign] || bytes.Contains(code, []byte(strings.ReplaceAll(sign, "_", " ")))
		}
	}
	return marks
}

var (
	splitOption = content.Pattern(`[ \t](?:-[a-z]*S|--split-string=?)`)
	restart     = content.Pattern(`(?m)^\W*exec\W+(?:\S*/)?([a-z]+)[^\n]*\$0`)
)

// interpreter returns the language of a script by its first line, "" if that names none that is known. A script of a
// shell that starts another program on itself is of that one.
func interpreter(head []byte) string {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	text, ok := strings.CutPrefix(string(line), "#!")
	words := strings.Fields(splitOption().ReplaceAllString(text, " "))
	if !ok || len(words) == 0 {
		return ""
	}
	program := path.Base(words[0])
	for n := 1; program == "env" && n < len(words); n++ {
		switch word := words[n]; {
		case word == "-u", word == "-C": // with an argument
			n++
		case !strings.HasPrefix(word, "-") && !strings.Contains(word, "="):
			program = path.Base(word)
		}
	}
	language := interpreters[strings.TrimRight(strings.TrimSuffix(strings.ToLower(program), ".exe"), "0123456789.-")]
	if m := restart().FindSubmatch(head); m != nil && language == "Shell" {
		language = cmp.Or(interpreters[string(m[1])], language)
	}
	return language
}

// interpreters maps programs that run scripts to languages.
var interpreters = map[string]string{
	"ash": "Shell", "awk": "Awk", "bash": "Shell", "bun": "TypeScript", "cargo": "Rust", "csh": "Shell", "dash": "Shell",
	"deno": "TypeScript", "elixir": "Elixir", "escript": "Erlang", "expect": "Tcl", "fish": "Shell", "gawk": "Awk",
	"groovy": "Groovy", "guile": "Scheme", "ipython": "Python", "jruby": "Ruby", "julia": "Julia", "ksh": "Shell",
	"lua": "Lua", "luajit": "Lua", "make": "Makefile", "mawk": "Awk", "nawk": "Awk", "node": "JavaScript",
	"nodejs": "JavaScript", "npx": "JavaScript", "nu": "Nushell", "ocaml": "OCaml", "perl": "Perl", "php": "PHP",
	"pwsh": "PowerShell", "pypy": "Python", "python": "Python", "racket": "Racket", "rscript": "R", "ruby": "Ruby",
	"runghc": "Haskell", "runhaskell": "Haskell", "sbcl": "Lisp", "scala": "Scala", "sh": "Shell", "swift": "Swift",
	"swipl": "Prolog", "tclsh": "Tcl", "tcsh": "Shell", "ts-node": "TypeScript", "tsx": "TypeScript", "uv": "Python",
	"wish": "Tcl", "zsh": "Shell",
}

// kindLanguages are the languages of kinds, for files whose name has none.
var kindLanguages = map[content.Kind]string{
	content.JSON: "JSON", content.NDJSON: "JSON", content.Diff: "Diff", content.GitLog: "Git log", content.Log: "Log",
	content.Table: "CSV", content.Markdown: "Markdown",
}
