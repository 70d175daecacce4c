package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// appendStat appends kind, lines, tokens and language of a file. If the file cannot be read it appends the error
// instead, so that the other files are still listed.
func (r *recordWriter) appendStat(b []byte, e foundEntry) []byte {
	src, err := r.f.in.Sources.Open(r.ctx, e.Path)
	if err == nil {
		defer func() { _ = src.Close() }()
		b = append(b, `,"kind":`...)
		b = appendString(b, string(src.Kind()))
		if src.Kind() == content.Binary {
			return b
		}
		var lines int64
		counter := r.f.in.NewTokenCounter()
		if lines, err = r.measure(src, counter); err == nil {
			b = fmt.Appendf(b, `,"lines":%d`, lines)
			n, off := counter.Total()
			b = append(appendTokens(b, n, off), `,"language":`...)
			return appendString(b, languageOf(e.Path, src.Kind()))
		}
	}
	r.f.unreadable++
	b = append(b, `,"error":`...)
	return appendString(b, content.ClipBytes(err.Error(), 300))
}

// appendTokens appends a token count, and its margin of error if it is an estimate.
func appendTokens(b []byte, n int64, off float64) []byte {
	b = fmt.Appendf(b, `,"tokens":%d`, n)
	if off > 0 {
		b = fmt.Appendf(b, `,"tokens_within":"±%.1f %%"`, math.Ceil(off*1000)/10)
	}
	return b
}

// measure reads a text once and counts its lines and tokens.
func (r *recordWriter) measure(src *source.Source, counter tools.TokenCounter) (lines int64, _ error) {
	text, err := src.Text()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	last := byte('\n')
	for {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		k, err := text.Read(buf)
		if k > 0 {
			lines += int64(bytes.Count(buf[:k], []byte{'\n'}))
			last = buf[k-1]
			_, _ = counter.Write(buf[:k])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if last != '\n' {
		lines++
	}
	return lines, nil
}

// languageOf returns the language that the name of a text file stands for, else that of its kind.
func languageOf(name string, kind content.Kind) string {
	for _, key := range []string{path.Ext(name), path.Base(name)} {
		if language := languages[strings.ToLower(key)]; language != "" {
			return language
		}
	}
	if language := kindLanguages[kind]; language != "" {
		return language
	}
	return "Text"
}

// kindLanguages are the languages of kinds in files whose name tells none.
var kindLanguages = map[content.Kind]string{
	content.JSON: "JSON", content.NDJSON: "JSON", content.Diff: "Diff", content.GitLog: "Git log", content.Log: "Log",
	content.Table: "CSV", content.Markdown: "Markdown",
}

// languages maps extensions and whole file names, in lower case, to languages.
var languages = map[string]string{
	".adb": "Ada", ".asm": "Assembly", ".s": "Assembly", ".awk": "Awk", ".bash": "Shell", ".bat": "Batch", ".c": "C", ".cc": "C++",
	".cjs": "JavaScript", ".clj": "Clojure", ".cljs": "Clojure", ".cmake": "CMake", "cmakelists.txt": "CMake", ".cpp": "C++", ".cs": "C#",
	".css": "CSS", ".csv": "CSV",
	".cu": "CUDA", ".cxx": "C++", ".d": "D", ".dart": "Dart", ".diff": "Diff", "dockerfile": "Dockerfile", ".el": "Emacs Lisp",
	".elm": "Elm", ".erl": "Erlang", ".ex": "Elixir", ".exs": "Elixir", ".f90": "Fortran", ".fish": "Shell", ".fs": "F#", ".go": "Go",
	".gql": "GraphQL", ".gradle": "Gradle", ".graphql": "GraphQL", ".groovy": "Groovy", ".h": "C", ".hcl": "HCL", ".hh": "C++",
	".hpp": "C++", ".hs": "Haskell", ".htm": "HTML", ".html": "HTML", ".hxx": "C++", ".ini": "INI", ".ipynb": "Jupyter", ".java": "Java",
	".jl": "Julia", ".js": "JavaScript", ".json": "JSON", ".jsonl": "JSON", ".jsx": "JavaScript", ".kt": "Kotlin", ".kts": "Kotlin",
	".less": "Less", ".lisp": "Lisp", ".lua": "Lua", ".m": "Objective-C", "makefile": "Makefile",
	".markdown": "Markdown", ".md": "Markdown", ".mjs": "JavaScript",
	".mk": "Makefile", ".ml": "OCaml", ".mli": "OCaml", ".mm": "Objective-C++", ".ndjson": "JSON", ".nim": "Nim", ".nix": "Nix",
	".pas": "Pascal", ".patch": "Diff", ".php": "PHP",
	".pl": "Perl", ".pm": "Perl", ".proto": "Protocol Buffers", ".ps1": "PowerShell", ".py": "Python",
	".pyi": "Python", ".r": "R", ".rb": "Ruby", "rakefile": "Ruby", "gemfile": "Ruby", ".rs": "Rust", ".rst": "reStructuredText",
	".sass": "Sass", ".scala": "Scala", ".scm": "Scheme", ".scss": "SCSS", ".sh": "Shell", ".sol": "Solidity", ".sql": "SQL", ".svelte": "Svelte",
	".svg": "SVG", ".swift": "Swift", ".tcl": "Tcl", ".tex": "TeX", ".tf": "HCL",
	".toml": "TOML", ".ts": "TypeScript", ".tsv": "TSV", ".tsx": "TypeScript",
	".vb": "Visual Basic", ".vim": "Vim script", ".vue": "Vue", ".wat": "WebAssembly", ".xml": "XML", ".yaml": "YAML", ".yml": "YAML",
	".zig": "Zig", ".zsh": "Shell", "go.mod": "Go module", "go.sum": "Go checksums", "jenkinsfile": "Groovy",
}
