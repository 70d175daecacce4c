package kinds

import (
	"path"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Language returns the language of a text file by its name, else by its kind; "Text" if both are unknown.
func Language(name string, kind content.Kind) string {
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

// kindLanguages are the languages of kinds, for files whose name has none.
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
