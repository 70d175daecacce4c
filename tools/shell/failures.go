package shell

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of failed tests.
const (
	maxFailed   = 1000 // failed tests that are remembered
	maxReported = 8    // failed tests whose messages are shown
	maxNotes    = 3    // lines that are shown of a Go test's log: the first ones and the last
	maxNames    = 300  // bytes of a list of names
	maxBlock    = 5000 // lines without a failed test that end a runner's report on failed tests
)

// quoted is a line of the output, or what is shown in its place.
type quoted struct {
	line int64
	text string
}

// String returns the text as it is shown, with the number of the line.
func (q quoted) String() string { return fmt.Sprintf("line %d: %s", q.line, q.text) }

// failure is a failed test.
type failure struct {
	quoted         // the line that names it
	name   string  // as the runner names it
	key    string  // the name with its package or file, if that is known
	place  string  // file:line where it failed
	says   string  // the message
	log    testLog // of a Go test
	unsure bool    // nothing says yet that it failed
	parent bool    // it failed because a test below it did
}

// plain reports whether nothing but the name is known.
func (f *failure) plain() bool { return f.place == "" && f.says == "" && len(f.log.notes) == 0 }

// lines returns what is shown of a failed test: one line with name, place and message, or the line that names it and
// those of its log.
func (f *failure) lines() (lines []string) {
	if f.place == "" && f.says == "" {
		lines = append(lines, f.String())
	} else {
		parts := []string{f.name}
		for _, part := range []string{f.place, f.says} {
			if part != "" {
				parts = append(parts, content.ClipBytes(part, findingWidth))
			}
		}
		lines = append(lines, quoted{f.line, strings.Join(parts, ": ")}.String())
	}
	for i, n := range f.log.notes {
		if i == maxNotes-1 && f.log.more > 0 {
			lines = append(lines, fmt.Sprintf("… %s of its log",
				content.Plural(int64(f.log.more), "more line", "more lines")))
		}
		lines = append(lines, n.String())
	}
	return lines
}

// failures are the failed tests of all test runs in an output.
type failures struct {
	list   []*failure
	byName map[string]*failure
	lost   bool // there were more than maxFailed
	broken bool // a run ended before all tests ran: which tests pass is unknown
	fresh  bool // a test failed since the last run ended

	goTests goTests
	events  map[string]*goTests // of go test -json, by package

	runner *runner  // whose report on failed tests is being read; nil: none
	block  *failure // the test that the next lines are about; nil: they are about something else
	next   *failure // whose message is the next line
	lists  bool     // the next lines are names of failed tests
	reads  bool     // the next lines are its message
	file   string   // that the tests of the report are in; "": the runner does not name it
	left   int      // lines until the report ends, if nothing else ends it
}

// fail returns the failed test of a name, and adds it at its first line. A runner may name a test twice.
func (f *failures) fail(name string, at quoted) *failure {
	f.fresh = true
	if known := f.byName[name]; known != nil {
		known.unsure = false
		return known
	}
	failed := &failure{quoted: at, name: name, key: name}
	if len(f.list) == maxFailed {
		f.lost = true
		return failed
	}
	if f.byName == nil {
		f.byName = map[string]*failure{}
	}
	f.byName[name] = failed
	f.list = append(f.list, failed)
	return failed
}

// open reports whether the next line may matter though nothing in it looks like a finding.
func (f *failures) open() bool { return f.runner != nil || f.next != nil || f.goTests.open() }

// add takes a line that may be about a test, and reports whether it is.
func (f *failures) add(line []byte, at int64) bool {
	if bytes.HasPrefix(line, []byte(`{"`)) {
		return f.addEvent(line, at)
	}
	return f.runner == nil && f.goTests.add(f, line, at) || f.addTo(line, at)
}

// A line that begins a report on tests starts with one of testStarts, after blanks, or contains one of testParts.
var testStarts, testParts = [][]byte{
	[]byte("FAIL"), []byte("ERROR "), []byte("PASS"), []byte("not ok "), []byte("✖ "), []byte("panic: "),
	[]byte("error: could not compile"),
}, [][]byte{
	[]byte("=== "), []byte("--- FAIL: "), []byte("--- PASS: "), []byte(".go:"), []byte(" FAILED"), []byte("<<< FAILURE!"),
	[]byte("<<< ERROR!"), []byte("panicked at "), []byte("COMPILATION ERROR"), []byte(`"Action":"`),
}

func mayBeTest(line []byte) bool {
	start := bytes.TrimLeft(line, " ")
	return slices.ContainsFunc(testStarts, func(text []byte) bool { return bytes.HasPrefix(start, text) }) ||
		slices.ContainsFunc(testParts, func(text []byte) bool { return bytes.Contains(line, text) })
}

// report returns the lines that are shown of the failed tests.
func (f *failures) report() (lines []string) {
	f.finish()
	shown := f.failed()
	if len(shown) > 1 {
		lines = append(lines, fmt.Sprintf("%d tests failed: %s", len(shown), listNames(names(shown))))
		if f.lost {
			lines[0] = "over " + lines[0]
		}
	}
	for _, failed := range shown[:min(len(shown), maxReported)] {
		lines = append(lines, failed.lines()...)
	}
	return lines
}

// finish ends the test runs that the output does not end.
func (f *failures) finish() {
	f.goTests.end(f, "")
	for _, name := range slices.Sorted(maps.Keys(f.events)) {
		f.events[name].end(f, name)
	}
	f.events = nil
}

// failed returns the failed tests, without those that failed only because a test below them did.
func (f *failures) failed() (list []*failure) {
	above := map[string]bool{}
	for _, failed := range f.list {
		for i, c := range failed.name {
			if c == '/' && !failed.unsure {
				above[failed.name[:i]] = true
			}
		}
	}
	known := slices.ContainsFunc(f.list, func(failed *failure) bool { return !failed.plain() })
	for _, failed := range f.list {
		group := failed.plain() && (above[failed.name] || known && strings.HasPrefix(failed.text, "✖ "))
		if !failed.unsure && !failed.parent && !group {
			list = append(list, failed)
		}
	}
	return list
}

func names(list []*failure) (names []string) {
	for _, failed := range list {
		names = append(names, failed.name)
	}
	return names
}

// listNames returns names as far as they fit, and how many do not.
func listNames(names []string) string {
	var out strings.Builder
	for i, name := range names {
		if out.Len() > 0 && out.Len()+len(name) > maxNames {
			return out.String() + fmt.Sprintf(" and %d more", len(names)-i)
		}
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(content.ClipBytes(name, maxNames))
	}
	return out.String()
}
