package scan

import (
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/outline"
)

// The categories of files.
const (
	Source        = "source"
	Test          = "test"
	Fixture       = "fixture"   // input or expected output of tests
	Generated     = "generated" // a program wrote it
	Documentation = "documentation"
	Configuration = "configuration"
	Data          = "data"
	Media         = "media"
	Binary        = "binary"
	Other         = "other"
)

// Categories are all categories.
var Categories = []string{
	Source, Test, Fixture, Generated, Documentation, Configuration, Data, Media, Binary, Other,
}

// fixtureDirs are names of directories that hold only what tests read.
var fixtureDirs = []string{"testdata", "fixtures", "__fixtures__", "__snapshots__", "snapshots", "golden"}

// Languages that are not programs.
var (
	documents      = []string{"Markdown", "reStructuredText", "TeX"}
	configurations = []string{
		"YAML", "TOML", "INI", "HCL", "Go module", "Go checksums", "Dockerfile", "Makefile", "CMake", "Groovy", "Nix",
	}
	dataLanguages = []string{"JSON", "CSV", "TSV", "XML", "Log", "Diff", "Git log", "SVG"}
)

// InFixtures reports whether a path lies in a directory of test fixtures.
func InFixtures(p string) bool {
	for name := range strings.SplitSeq(path.Dir(p), "/") {
		if slices.Contains(fixtureDirs, name) {
			return true
		}
	}
	return false
}

// categoryOf returns the category of a file whose other fields are known.
func categoryOf(f *File) string {
	base := strings.ToLower(path.Base(f.Path))
	switch {
	case InFixtures(f.Path):
		return Fixture
	case f.Generated, base == "go.sum", strings.HasSuffix(base, ".lock"), base == "package-lock.json":
		return Generated
	case f.Binary && (strings.HasPrefix(f.MIME, "image/") || strings.HasPrefix(f.MIME, "audio/") ||
		strings.HasPrefix(f.MIME, "video/") || strings.HasPrefix(f.MIME, "font/")), f.Language == "SVG":
		return Media
	case f.Binary:
		return Binary
	case slices.Contains(documents, f.Language), isDocument(base):
		return Documentation
	case slices.Contains(configurations, f.Language), strings.HasPrefix(base, "."), isConfiguration(base):
		return Configuration
	case slices.Contains(dataLanguages, f.Language):
		return Data
	case f.Language == "":
		return Other
	case outline.IsTest(f.Path):
		return Test
	}
	return Source
}

func isDocument(base string) bool {
	name, _, _ := strings.Cut(base, ".")
	return slices.Contains([]string{
		"readme", "license", "licence", "copying", "authors", "contributors", "changelog", "changes", "notice", "patents",
		"contributing", "security", "history", "news", "todo",
	}, name) || path.Ext(base) == ".txt" && name != "requirements" || path.Ext(base) == ".adoc"
}

func isConfiguration(base string) bool {
	return slices.Contains([]string{
		"package.json", "tsconfig.json", "composer.json", "pom.xml", "cargo.toml", "requirements.txt", "setup.cfg",
		"procfile",
	}, base) || strings.HasSuffix(base, ".conf") || strings.HasSuffix(base, ".cfg")
}

// mimes are the MIME types of texts by their language; the others are text/plain.
var mimes = map[string]string{
	"HTML": "text/html", "CSS": "text/css", "JavaScript": "text/javascript", "Markdown": "text/markdown",
	"CSV": "text/csv", "JSON": "application/json", "XML": "application/xml",
	"YAML": "application/yaml", "TOML": "application/toml",
	"SVG": "image/svg+xml",
}
