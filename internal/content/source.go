package content

import (
	"bytes"
	"path"
	"strings"
)

// sources are the names of files that people write for machines: programs, markup, settings. By extension or whole name, lower
// case, in words that blanks part. Not among them is what has a kind of its own, or holds what programs print: json, md, csv,
// diff, log, txt, out.
const sources = ` .adb .ads .asm .s .awk .bash .bat .c .cc .cfg .cjs .clj .cljs .cmake .conf .cpp .cs .css .cts .cu .cxx .d .dart .editorconfig
 .el .elm .env .erl .ex .exs .f90 .fish .fs .go .gql .gradle .graphql .groovy .h .hbs .hcl .hh .hpp .hs .htm .html .hxx .ini .java .jl .js .jsx
 .kt .kts .less .lisp .lua .m .mjs .mk .ml .mli .mm .mts .nim .nix .pas .php .pl .pm .properties .proto .ps1 .py .pyi .r .rb .rs .rst .sass
 .scala .scm .scss .sh .sol .sql .svelte .svg .swift .tcl .templ .tex .tf .tmpl .toml .ts .tsx .vb .vim .vue .wat .xhtml .xml .xsd .xsl .yaml .yml
 .zig .zsh .gitattributes .gitignore cmakelists.txt dockerfile gemfile gnumakefile go.mod go.sum go.work jenkinsfile justfile makefile rakefile `

var isSource = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(sources) {
		names[name] = true
	}
	return names
}()

// IsSource says by a file's name that it holds source: a program, markup or settings. Errors, times and stack traces in it are
// spoken of; they did not happen.
func IsSource(name string) bool {
	base := strings.ToLower(path.Base(name))
	return isSource[base] || isSource[path.Ext(base)]
}

// FileHeader reads the line above each of several files that were written one after the other, "==> NAME <==", as head, tail and
// our own read write it. Behind it may stand why the file itself does not.
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
