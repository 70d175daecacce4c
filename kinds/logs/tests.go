package logs

import (
	"bytes"
	"strings"
)

// maxTests is how many Go tests without a result have their errors held.
const maxTests = 1000

// testErrors are lines of errors that running Go tests print, in an output with -v. They count if the test fails: what
// a passing test prints is no error.
type testErrors struct {
	current string // the test that prints; "": none does
	since   int64  // the line that says so
	held    map[string]*heldErrors
}

// heldErrors are the errors of one test.
type heldErrors struct {
	levels      [levels]int64
	first, last quoted
}

// level returns the level of a line of an error without a time: none if the line is of the log of a Go test, a count of
// "uniq -c", or printed by a running test, which holds it.
func (t *testErrors) level(line []byte, lv level, at int64) level {
	switch {
	case isCount(line), isTestLog(line):
		return noLevel
	case t.current == "" || reportsFailure(line):
		return lv
	}
	h := t.held[t.current]
	if h == nil {
		if t.held == nil {
			t.held = map[string]*heldErrors{}
		}
		if len(t.held) >= maxTests {
			return lv
		}
		h = &heldErrors{}
		h.first.set(at, line)
		t.held[t.current] = h
	}
	h.levels[lv]++
	h.last.set(at, line)
	return noLevel
}

// isCount reports whether a line is one of "uniq -c": a number behind blanks, one blank, and the line that was counted.
func isCount(line []byte) bool {
	rest := bytes.TrimLeft(line, " ")
	n := digitsEnd(rest, 0)
	return n > 0 && n < len(rest) && rest[n] == ' ' && len(rest) < len(line)
}

// isTestLog reports whether a line is of the log of a Go test: "    a_test.go:3: text".
func isTestLog(line []byte) bool {
	rest := bytes.TrimLeft(line, " ")
	i := bytes.Index(rest, []byte("_test.go:"))
	return i > 0 && len(rest) < len(line) && bytes.IndexByte(rest[:i], ' ') < 0
}

// testLine takes the lines by which go test -v names the test that prints, and those with its result.
func (l *logs) testLine(line []byte, at int64) {
	rest := bytes.TrimLeft(line, " ")
	switch {
	case bytes.HasPrefix(line, []byte("=== ")):
		word, name, _ := bytes.Cut(line[4:], []byte(" "))
		switch string(word) {
		case "RUN", "CONT", "NAME":
			l.tests.current, l.tests.since = string(bytes.TrimSpace(name)), at
		case "PAUSE":
			l.tests.current = ""
		}
	case string(line) == "PASS" && strings.HasPrefix(l.tests.current, "Benchmark"): // it has no result of its own
		l.endTest(l.tests.current, false)
	case bytes.HasPrefix(rest, []byte("--- ")):
		verdict, name, _ := bytes.Cut(rest[4:], []byte(": "))
		if name, _, ok := bytes.Cut(name, []byte(" (")); ok {
			l.endTest(string(name), string(verdict) == "FAIL")
		}
	}
}

// endTest counts the errors of a test that failed, and drops those of another.
func (l *logs) endTest(name string, failed bool) {
	h := l.tests.held[name]
	delete(l.tests.held, name)
	if name == l.tests.current {
		l.tests.current = ""
		if !failed {
			l.panics.dropBare(l.tests.since)
		}
	}
	if h == nil || !failed {
		return
	}
	for lv, n := range h.levels {
		l.levels[lv] += n
		l.levels[noLevel] -= n
		l.errors.n += n
	}
	l.errors.add(0, h.first.line, h.first.text)
	l.errors.add(0, h.last.line, h.last.text)
}
