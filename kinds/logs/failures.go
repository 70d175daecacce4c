package logs

import (
	"bytes"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// failures are the beginnings of lines with which test runners and build tools report a failure.
var failures = []string{
	"--- FAIL", "FAIL\t", "FAIL ", "FAILED ", "FAILED: ", "FAIL: ", "not ok ", "npm ERR!", "make: *** ",
}

// reportsFailure reports whether a line begins with one of failures.
func reportsFailure(b []byte) bool {
	return len(b) > 0 && bytes.IndexByte([]byte("-Fnm"), b[0]) >= 0 && slices.ContainsFunc(failures, func(s string) bool {
		return bytes.HasPrefix(b, []byte(s))
	})
}

var (
	// failedTest matches a line, passed without the blanks before it, by which a runner names a failed test: go, dotnet
	// and MSTest, gtest, bun; and a message of eslint or stylelint below the name of its file.
	failedTest = content.Pattern(
		`^(?:--- FAIL: |not ok \d|FAIL(?:ED)? {1,2}\S|(?:[Ff]ailed|X) \S.* [\[(](?:< ?)?\d[\d., hms]*m?s[\])]$|` +
			`\[  FAILED  \] |\(fail\) |\d+:\d+ +(?:error|✖|×) )`,
	)
	// crossed matches such a line of jest, vitest, mocha, bats, playwright or node, which begins with a cross; the
	// capture is the time that it took.
	crossed = content.Pattern(`^[✗✕✖✘×] +(?:\d+ problems?|\S.*?)( [\[(]?[\d.]+ ?m?s[\])]?)?$`)
	// failedAtEnd matches the end of such a line of pytest, unittest, cargo, gradle, maven, ctest, ScalaTest, xUnit,
	// dart, Robot Framework or XCTest.
	failedAtEnd = content.Pattern(
		`(?: (?:FAILED|\(Failed\)|\[FAIL\]|\[E\]|\(FAILED - \d+\)|\| FAIL \|)|\.\.\. (?:FAIL|ERROR)|` +
			`<<< (?:FAILURE|ERROR)!| FAILED +\[ *\d+%\]| FAILED \([\d.]+ ?m?s\)| FAILED in [\d.]+s|` +
			`\*\*\* FAILED \*\*\*|\*\*\*(?:Failed|Timeout|Exception.*?) +[\d.]+ sec| failed \([\d.]+ seconds\)\.?)$`,
	)
)

// testVerdict matches the result of the next test, which ends the stack of the one before.
var testVerdict = content.Pattern(`^\s+(?:Passed|Skipped|Failed|ok|not ok|[✓✔√✕✗✖×]) \S`)

// runnerFailure reports whether a test runner or linter names a failure by a line. A cross without a time is one
// only behind a time or blanks, because lists in prose have crosses.
func runnerFailure(b []byte, stamped bool) bool {
	text := bytes.TrimSpace(b)
	if len(text) < 5 {
		return false
	}
	if c := text[0]; c == 0xe2 && text[1] == 0x9c || c == 0xc3 && text[1] == 0x97 {
		m := crossed().FindSubmatch(text)
		count := bytes.HasPrefix(text, []byte("✖ ")) && text[4]-'0' <= 9
		return m != nil && (len(m[1]) > 0 || stamped || b[0] == ' ' || count)
	}
	return mayBeginFailed(text) && failedTest().Match(text) || mayEndFailed(text) &&
		failedAtEnd().Match(text[max(0, len(text)-100):])
}

// failedBegins are the first bytes, at most five, of most lines of [failedTest].
var failedBegins = []string{"--- F", "not o", "FAIL", "Faile", "faile", "X ", "[  FA", "(fail"}

// mayBeginFailed is a cheap test for [failedTest], which most lines fail.
func mayBeginFailed(b []byte) bool {
	switch c := b[0]; c {
	case '-', 'n', 'F', 'f', 'X', '[', '(':
		return slices.ContainsFunc(failedBegins, func(s string) bool { return string(b[:len(s)]) == s })
	default:
		n := digitsEnd(b, 0)
		return n > 0 && n < len(b) && b[n] == ':' && bytes.IndexByte(b[n:], ' ') > 0
	}
}

// mayEndFailed is a cheap test for [failedAtEnd], which most lines fail.
func mayEndFailed(b []byte) bool {
	switch c, before := b[len(b)-1], b[len(b)-2]; c {
	case 'D', 'L', 'R', '|', '*', '!':
		return before == 'E' || before == 'I' || before == 'O' || before == ' ' || before == '*' || before == 'R'
	case ']', ')', 'c', 's', '.':
		end := b[max(0, len(b)-100):]
		return c == ']' && (before == 'E' || before == 'L') || bytes.Contains(end, []byte("FAILED")) ||
			c != 's' && c != ']' && (bytes.Contains(end, []byte("ailed")) || bytes.Contains(end, []byte("***")))
	}
	return false
}

// codeFollows reports whether the number of a message follows a level: " C2065: …", as compilers of Microsoft and
// TypeScript's write it.
func codeFollows(b []byte) bool {
	if len(b) < 4 || b[0] != ' ' {
		return false
	}
	letters := 1
	for letters < len(b) && b[letters]-'A' < 26 {
		letters++
	}
	end := digitsEnd(b, letters)
	return letters > 1 && end > letters && bytes.HasPrefix(bytes.TrimLeft(b[end:], " "), []byte(":"))
}

// numberedLines is how many lines after the last sign of a report on failed tests a numbered line names one.
const numberedLines = 1000

var (
	// numberedReport matches the beginning of a report that numbers failed tests, and a test that passed in the output
	// of mocha, which numbers failed ones in between.
	numberedReport = content.Pattern(`^(?:[✓✔√] |\d+ (?:failing|failed|passing)(?: \(.*\))?$|Failures:$|` +
		`There (?:was|were) \d+ (?:failure|error)s?:$)`)
	// numberedTest matches a failed test of mocha, cypress, playwright, rspec, phpunit or ExUnit.
	numberedTest = content.Pattern(`^\d+\) \S`)
)

// numbers reads the lines of reports that number failed tests.
type numbers struct {
	left int  // lines in which a numbered one names a failed test
	bare bool // also without blanks before it
}

// level returns the level of a line without a level: failure if it names a failed test.
func (n *numbers) level(b []byte, stamped bool) level {
	text := bytes.TrimLeft(b, " ")
	indented := stamped || len(text) < len(b)
	if n.left > 0 {
		n.left--
		if (n.bare || indented) && numberedTest().Match(text) {
			n.left = numberedLines
			return failure
		}
	}
	if mayBeReport(text, indented) && numberedReport().Match(text) {
		n.left, n.bare = numberedLines, text[0] == 'T'
	}
	return noLevel
}

// mayBeReport is a cheap test for [numberedReport], which most lines fail.
func mayBeReport(b []byte, indented bool) bool {
	if len(b) < 5 {
		return false
	}
	switch count := digitsEnd(b, 0); {
	case count > 0:
		return bytes.HasPrefix(b[count:], []byte(" fail")) || bytes.HasPrefix(b[count:], []byte(" pass"))
	case b[0] == 0xe2:
		return indented && b[1] != 0x80
	}
	return bytes.HasPrefix(b, []byte("Fail")) || bytes.HasPrefix(b, []byte("There w"))
}
