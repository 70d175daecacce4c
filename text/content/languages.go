package content

import (
	"cmp"
	"path"
	"strings"
)

// LanguageOf returns the language that the name of a file stands for, by the whole name or by its suffix; "" if it is
// unknown. Case does not matter. Several languages share some suffixes: the most frequent one counts.
func LanguageOf(name string) string {
	base := strings.ToLower(path.Base(name))
	return cmp.Or(languages[base], languages[path.Ext(base)])
}

// languages maps extensions and whole file names, in lower case, to languages.
var languages = map[string]string{
	".adb": "Ada", ".asm": "Assembly", ".astro": "Astro", ".awk": "Awk", ".bash": "Shell", ".bat": "Batch", ".c": "C",
	".cc": "C++", ".cjs": "JavaScript", ".clj": "Clojure", ".cljs": "Clojure", ".cls": "Apex", ".cmake": "CMake",
	".cpp": "C++", ".cs": "C#", ".css": "CSS", ".csv": "CSV", ".cts": "TypeScript", ".cu": "CUDA", ".cxx": "C++",
	".d": "D", ".dart": "Dart", ".diff": "Diff", ".dockerfile": "Dockerfile", ".el": "Emacs Lisp", ".elm": "Elm",
	".erl": "Erlang", ".ex": "Elixir", ".exs": "Elixir", ".f90": "Fortran", ".fish": "Shell", ".fs": "F#",
	".gemspec": "Ruby", ".geojson": "JSON", ".go": "Go", ".gql": "GraphQL", ".gradle": "Gradle", ".graphql": "GraphQL",
	".groovy": "Groovy", ".h": "C", ".hcl": "HCL", ".hh": "C++", ".hpp": "C++", ".hs": "Haskell", ".htm": "HTML",
	".html": "HTML", ".hxx": "C++", ".ini": "INI", ".ipynb": "Jupyter", ".java": "Java", ".jl": "Julia",
	".js": "JavaScript", ".json": "JSON", ".json5": "JSON", ".jsonc": "JSON", ".jsonl": "JSON", ".jsx": "JavaScript",
	".kt": "Kotlin", ".kts": "Kotlin", ".less": "Less", ".lisp": "Lisp", ".lua": "Lua", ".m": "Objective-C",
	".markdown": "Markdown", ".md": "Markdown", ".mjs": "JavaScript", ".mk": "Makefile", ".ml": "OCaml",
	".mli": "OCaml", ".mm": "Objective-C++", ".mts": "TypeScript", ".ndjson": "JSON", ".nim": "Nim", ".nix": "Nix",
	".pas": "Pascal", ".patch": "Diff", ".php": "PHP", ".pl": "Perl", ".pm": "Perl", ".pro": "IDL",
	".proto": "Protocol Buffers", ".ps1": "PowerShell", ".py": "Python", ".pyi": "Python", ".pyw": "Python", ".r": "R",
	".rake": "Ruby", ".rb": "Ruby", ".rkt": "Racket", ".rs": "Rust", ".rst": "reStructuredText", ".s": "Assembly",
	".sass": "Sass", ".scala": "Scala", ".scm": "Scheme", ".scss": "SCSS", ".sh": "Shell", ".sol": "Solidity",
	".sql": "SQL", ".svelte": "Svelte", ".svg": "SVG", ".swift": "Swift", ".t": "Perl", ".tcl": "Tcl", ".tex": "TeX",
	".tf": "HCL", ".toml": "TOML", ".ts": "TypeScript", ".tsv": "TSV", ".tsx": "TypeScript", ".v": "Verilog",
	".vb": "Visual Basic", ".vim": "Vim script", ".vue": "Vue", ".wat": "WebAssembly", ".xml": "XML", ".yaml": "YAML",
	".yml": "YAML", ".zig": "Zig", ".zsh": "Shell", "cmakelists.txt": "CMake", "containerfile": "Dockerfile",
	"dockerfile": "Dockerfile", "gemfile": "Ruby", "gnumakefile": "Makefile", "go.mod": "Go module",
	"go.sum": "Go checksums", "jenkinsfile": "Groovy", "makefile": "Makefile", "rakefile": "Ruby",
}
