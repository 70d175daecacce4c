package content

import (
	"bytes"
	"path"
	"strings"
)

// sources lists the extensions and names of source files (programs, markup, settings), in lower case, separated by
// blanks. It excludes formats with a [Kind] of their own and formats for program output: json, md, csv, diff, log,
// txt, out.
const sources = ` .adb .ads .asm .s .awk .bash .bat .c .cc .cfg .cjs .clj .cljs .cmake .conf .cpp .cs .css .cts .cu .cxx .d .dart .editorconfig
 .el .elm .env .erl .ex .exs .f90 .fish .fs .go .gql .gradle .graphql .groovy .h .hbs .hcl .hh .hpp .hs .htm .html .hxx .ini .java .jl .js .jsx
 .kt .kts .less .lisp .lua .m .mjs .mk .ml .mli .mm .mts .nim .nix .pas .php .pl .pm .properties .proto .ps1 .py .pyi .r .rb .rs .rst .sass
 .scala .scm .scss .sh .sol .sql .svelte .svg .swift .tcl .templ .tex .tf .tmpl .toml .ts .tsx .vb .vim .vue .wat .xhtml .xml .xsd .xsl .yaml .yml
 .zig .zsh .gitattributes .gitignore cmakelists.txt dockerfile gemfile gnumakefile go.mod go.sum go.work jenkinsfile justfile makefile rakefile `

var isSource = SetOf(sources)

// SetOf returns the set of words that are separated by white space.
func SetOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// IsSource reports whether a file is a source file by its name: a program, markup or settings. Errors, times and
// stack traces in a source file are only examples, not events.
func IsSource(name string) bool {
	base := strings.ToLower(path.Base(name))
	return isSource[base] || isSource[path.Ext(base)]
}

// FileHeader parses the line "==> NAME <==" that head, tail and this server's read tool print above each of several
// files. If the file could not be shown, a reason may follow after a blank.
func FileHeader(line []byte) (name string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("==> "))
	if !ok {
		return "", false
	}
	before, after, ok := bytes.Cut(rest, []byte(" <=="))
	if !ok || len(before) == 0 || len(after) > 0 && after[0] != ' ' {
		return "", false
	}
	return string(before), true
}
