package outline

import "bytes"

var (
	testName = pattern(`(?:^|[/\\])(?:(?:tests?|spec|__tests__)[/\\].*[^/\\]|test_[^/\\]*\.py|` +
		`[^/\\]+(?:[._](?:test|spec)\.\w+|\BTests?\.(?:java|cs|php)))$`)
	generatedGo   = pattern(`^// Code generated .* DO NOT EDIT\.$`)
	generatedMark = pattern(`(?:^|\W)@generated\b|\bDO NOT EDIT\b`)
	packageClause = pattern(`^package \w+( *//.*)?$`)
	commentLine   = pattern(`^(?://|#|/?\*|--|;|%|<!--|"""|''')`)
)

// IsTest reports whether a file name is that of a test, or a directory of its path is one of tests.
func IsTest(path string) bool { return testName().MatchString(path) }

// IsGenerated reports whether a text says that it was generated. Go's line counts before the package clause.
// In other languages "@generated" or "DO NOT EDIT" counts in a comment of the first 20 lines.
func IsGenerated(text []byte) bool {
	marked, block, header, n := false, false, true, 0
	for raw := range bytes.Lines(bytes.TrimPrefix(text[:min(len(text), maxText)], []byte("\ufeff"))) {
		n++
		raw = bytes.TrimRight(raw[:min(len(raw), maxLine)], "\r\n")
		line := bytes.TrimSpace(raw)
		comment := block || commentLine().Match(line)
		if header && !block && generatedGo().Match(raw) {
			return true
		}
		marked = marked || n <= 20 && comment && generatedMark().Match(line)
		if header = header && (comment || len(line) == 0); !header && n >= 20 {
			break
		}
		if !comment && packageClause().Match(line) {
			return false // of a Go file, the form of the mark is fixed
		}
		if open := bytes.LastIndex(line, []byte("/*")); block || open == 0 {
			block = bytes.LastIndex(line, []byte("*/")) < max(open, 0)
		}
	}
	return marked
}
