package shell

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// runner says how a test runner reports failed tests: a line that names one, then lines with its message and place.
type runner struct {
	begins func() *regexp.Regexp // the report on failed tests, group 1: the file they are in; nil: they may be anywhere
	ends   func() *regexp.Regexp // that report; of a runner without one, the lines about a test
	fails  func() *regexp.Regexp // group 1: the name of a failed test
	other  func() *regexp.Regexp // lines about something else follow, until a test is named; nil: none
	starts func() *regexp.Regexp // the message; nil: it follows the name
	says   func() *regexp.Regexp // group 1: a line of the message
	stops  func() *regexp.Regexp // the message; nil: each line that says matches is of it
	place  func() *regexp.Regexp // group 1: file:line
	named  bool                  // an earlier line names each failed test, because the output of others looks the same
	once   bool                  // it names a test once, and the last place counts instead of the first
}

// nothing matches no line.
var nothing = content.Pattern(`x^`)

// runners are those of pytest; jest; vitest; cargo test; maven surefire and gradle; TAP, as node --test writes it; node
// --test for a terminal.
var runners = []runner{
	{
		begins: content.Pattern(`^={3,} (?:FAILURES|ERRORS) =+$`), ends: content.Pattern(`^=+ .+ =+$`),
		fails: content.Pattern(`^_+ ([^_ ].*?) _+$`), other: content.Pattern(`^-+ Captured .* -+$`), starts: nil,
		says: content.Pattern(`^E {3,}(\S.*)`), stops: nothing, place: content.Pattern(`^(\S+\.py:\d+): `), once: true,
	},
	{
		begins: content.Pattern(`^FAIL +(\S+\.[cm]?[jt]sx?)\b`), ends: content.Pattern(`^(?:PASS |Test Suites:|Tests:)`),
		fails: content.Pattern(`^  ● (.+)$`), other: content.Pattern(`^  ● Console$`),
		says: content.Pattern(`^ {4,}(\S.*)`), stops: content.Pattern(`^ +(?:> )?\d+ \||^\s+at `), place: scriptFrame,
	},
	{
		fails: content.Pattern(`^ FAIL  (\S.* > .+)$`), ends: content.Pattern(`^⎯`),
		says: content.Pattern(`^(\S.*)`), stops: content.Pattern(`^ ❯ `), place: content.Pattern(`^ ❯ .*?(\S+:\d+):\d+$`),
	},
	{
		named: true, ends: content.Pattern(`^test result: `),
		fails: content.Pattern(`^---- (.+) stdout ----$`), starts: content.Pattern(`^Error: |^thread .* panicked at `),
		says: content.Pattern(`^\s*(\S.*)`), stops: content.Pattern(`^note: |^stack backtrace:|^$`),
		place: content.Pattern(`panicked at (?:'.*', )?(\S+:\d+):\d+:?$`),
	},
	{
		fails: content.Pattern(`^(?:\[ERROR\] +)?([\w.$]+[^,]*?) +(?:-- )?Time elapsed: .* <<< (?:FAILURE|ERROR)!$|` +
			`^(\S+ > .+) FAILED$`),
		ends: content.Pattern(`^$|^\[`), says: content.Pattern(`^(?: {4})?(\S.*)`), stops: content.Pattern(`^\s+at `),
		place: content.Pattern(`\bat (?:[\w.$/<>]+\()?(\w+\.(?:java|kt|scala|groovy):\d+)\)?$`),
	},
	{
		fails: content.Pattern(`^ *not ok \d+(?: -)? (.+)$`), ends: content.Pattern(`^\s+\.\.\.$|^\s*ok `),
		starts: content.Pattern(`^\s+error: `), says: content.Pattern(`^\s+(?:error: )?(?:\|-)?['"]?(.*?)['"]?$`),
		stops: content.Pattern(`^\s+[a-zA-Z_]+: ?\S*$|^\s+[a-zA-Z_]+: '`), place: scriptFrame,
	},
	{
		fails: content.Pattern(`^ *✖ (.+) \([\d.]+m?s\)$`), ends: content.Pattern(`^(?:\s*[▶✔] |ℹ |$)`),
		says: content.Pattern(`^\s+(\S.*)`), stops: content.Pattern(`^\s+at `), place: scriptFrame,
	},
}

const cargo = 3 // index into runners

// scriptFrame matches a frame of a JavaScript stack; group 1 is file:line.
var scriptFrame = content.Pattern(
	`^\s+(?:at )?(?:.*? \(|async )?((?:file://)?[^\s()]+\.[cm]?[jt]sx?:\d+):\d+\)?(?: \{)?$`,
)

// foreign matches the frames of runtimes, packages and test frameworks.
var foreign = content.Pattern(
	`node_modules|\bnode:|\(internal/|/lib(?:64)?/python|-packages/|"<frozen |/rustc/|` +
		`\bat (?:[\w.]+/)?(?:java|javax|jdk|sun|kotlin|scala|groovy|junit|` +
		`org\.(?:junit|opentest4j|hamcrest|assertj|mockito|testng|gradle))\.`,
)

var (
	// pytestSummary matches a line of pytest's summary; it names the file of a test.
	pytestSummary = content.Pattern(`^(?:FAILED|ERROR) (\S+\.py(?:::.+?)?)(?: - (.*))?$`)
	// cargoResult matches the result of a test of cargo.
	cargoResult = content.Pattern(`^test (\S+) \.\.\. FAILED$`)
	// cargoPanic matches the panic of a test as --nocapture shows it, before the result of the test.
	cargoPanic = content.Pattern(`^thread '(.+?)' (?:\(\d+\) )?panicked at (\S+:\d+):\d+:$`)
	// runStart matches the first line of a test run of pytest; those of other runners look like any line.
	runStart = content.Pattern(`^={3,} test session starts =+$`)
	// runEnd matches the last lines of a test run.
	runEnd = content.Pattern(
		`^(?:(?:FAIL|ok  )\t|(?:FAILED|ERROR) \S+\.py|=+ .* in [\d.]+s.* =+$|test result: |Tests: |# fail \d|` +
			`(?:\[\w+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+$)`,
	)
	// breaksOff matches the lines by which runners report that not all tests ran.
	breaksOff = content.Pattern(
		`^(?:FAIL\t.*\[(?:build|setup) failed\]|error: could not compile|\[ERROR\] COMPILATION ERROR|` +
			`  ● Test suite failed to run|ERROR \S+\.py(?: - .*)?$|Bail out!)`,
	)
)

// addTo reads a line of a runner other than Go's, and reports whether it is about a test.
func (f *failures) addTo(line []byte, at int64) bool {
	f.broken = f.broken || breaksOff().Match(line)
	if f.names(line, at) {
		return true
	}
	for i := range runners {
		r := &runners[i]
		if m := begins(r, line); m != nil {
			f.runner, f.block, f.left, f.file = r, nil, maxBlock, ""
			if len(m) > 1 {
				f.file = string(m[1])
			}
			return true
		}
		if r.begins != nil && r != f.runner || r.other != nil && r.other().Match(line) {
			if r == f.runner {
				f.block = nil
			}
			continue
		}
		if m := r.fails().FindSubmatch(line); m != nil {
			f.begin(r, string(bytes.Join(m[1:], nil)), quoted{at, clipped(line)})
			return true
		}
	}
	if r := f.runner; r != nil {
		if f.left--; f.left == 0 || r.ends().Match(line) {
			f.runner, f.block = nil, nil
			return false
		}
		f.describe(r, line)
		return true
	}
	return false
}

func begins(r *runner, line []byte) [][]byte {
	if r.begins == nil {
		return nil
	}
	return r.begins().FindSubmatch(line)
}

// begin begins a runner's lines about a failed test.
func (f *failures) begin(r *runner, name string, at quoted) {
	if f.left = maxBlock; r != f.runner {
		f.runner, f.file = r, ""
	}
	key := strings.TrimSpace(f.file + " " + name)
	switch {
	case r.once:
		key = f.unused(key)
	case r.named && f.byName[key] == nil:
		f.block = nil
		return
	}
	known := f.byName[key] != nil
	f.block = f.fail(key, at)
	f.block.name = name
	// A runner that names a test again, in a list at its end, repeats the message.
	f.reads = r.starts == nil && !(known && f.block.says != "")
}

// first returns the first failed test of a name; nil if there is none. The file of the test is not known yet.
func (f *failures) first(name string) *failure {
	for _, failed := range f.list {
		if failed.name == name {
			return failed
		}
	}
	return nil
}

// unused returns a key that no test has: tests of several files may have one name.
func (f *failures) unused(name string) string {
	key := name
	for n := 2; f.byName[key] != nil && n < maxFailed; n++ {
		key = fmt.Sprint(name, " ", n)
	}
	return key
}

// describe reads a line of a runner about the current failed test: its place or its message.
func (f *failures) describe(r *runner, line []byte) {
	b := f.block
	if b == nil {
		return
	}
	if m := r.place().FindSubmatch(line); m != nil && (b.place == "" || r.once) && !foreign().Match(line) {
		b.place = strings.TrimPrefix(string(m[1]), "file://")
	}
	if bytes.Contains(line, []byte("'subtestsFailed'")) {
		b.parent = true
	}
	switch starts := r.starts != nil && r.starts().Match(line); {
	case starts && b.says == "":
		if f.reads = true; bytes.HasSuffix(line, []byte(":")) { // the message follows
			return
		}
	case f.reads && r.stops().Match(line):
		f.reads = false
	}
	if m := r.says().FindSubmatch(line); f.reads && m != nil && len(b.says) < findingWidth {
		b.says = strings.TrimSpace(b.says + " " + clipped(m[1]))
	}
}

// names reads a line that names a failed test in another place than the report on it, and reports whether it is one.
func (f *failures) names(line []byte, at int64) bool {
	if f.next != nil {
		f.next.says, f.next = clipped(line), nil
		return true
	}
	if f.runner == nil || f.runner == &runners[cargo] {
		if f.namesCargo(line, at) {
			return true
		}
	}
	m := pytestSummary().FindSubmatch(line)
	if m == nil {
		return false
	}
	name := string(m[1])
	file, test, _ := strings.Cut(name, "::")
	test = strings.ReplaceAll(test, "::", ".")
	for _, prefix := range []string{"", "ERROR at setup of ", "ERROR at teardown of ", "ERROR collecting "} {
		if known := f.first(prefix + cmp.Or(test, file)); known != nil {
			delete(f.byName, known.key)
			known.name, known.key, f.byName[name] = name, name, known
			return true
		}
	}
	f.fail(name, quoted{at, clipped(line)})
	return true
}

// namesCargo is names for cargo, whose report begins with the first failed test.
func (f *failures) namesCargo(line []byte, at int64) bool {
	c, name, place := &runners[cargo], "", ""
	switch lists := f.lists; {
	case f.runner == c && string(line) == "failures:":
		f.lists, f.block = true, nil
		return true
	case lists && bytes.HasPrefix(line, []byte("    ")):
		name = strings.TrimSpace(string(line))
	case bytes.HasSuffix(line, []byte(" ... FAILED")):
		if m := cargoResult().FindSubmatch(line); m != nil {
			name = string(m[1])
		}
	case f.block == nil && bytes.HasPrefix(line, []byte("thread '")):
		if m := cargoPanic().FindSubmatch(line); m != nil && string(m[1]) != "main" {
			name, place = string(m[1]), string(m[2])
		}
	}
	if f.lists = f.lists && (name != "" || len(line) == 0); name == "" {
		return false
	}
	if f.runner == nil {
		f.runner, f.block, f.left, f.file = c, nil, maxBlock, ""
	}
	fresh, known := f.fresh, f.byName[name]
	if place != "" && known != nil {
		return false
	}
	if test := f.fail(name, quoted{at, clipped(line)}); place != "" {
		test.place, test.unsure, f.next, f.fresh = place, true, test, fresh
	}
	return true
}
