package shell

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// Limits of findings.
const (
	maxFindings    = 12
	maxFindingLine = 400 // bytes; longer lines are no messages of a compiler or a test
	findingWidth   = 200 // bytes that are quoted
)

// findings are the lines by which compilers, test runners and package managers report what failed. They are shown only
// if the command failed.
type findings struct {
	tests  failures // these come first
	others fewLines // the others
	held   fewLines // others that a test may have printed; they count if no test of the run fails
	line   int64    // lines that have ended
	open   []byte   // the line that has not ended, as far as it is held
	cut    bool     // open holds only a part of the text
	frame  quoted   // the last frame of a Python traceback
	own    quoted   // the last frame that is not in a library
	above  quoted   // the last line that names a place in a script, as node prints above an error
	script quoted   // that of the error whose frames may follow
	trace  int      // lines in which these frames may follow; 0: none is expected

	outcomes []string
}

// findingSigns has at least one text of each line that [findings.inspect] looks for. It has the escape character,
// because an escape sequence may divide another text. The order only affects speed: a searcher groups every eighth text
// in a set. This order was found by swapping texts, and is five times as fast as the first one.
var findingSigns = func() (needles []literal.Needle) {
	for _, text := range []string{
		"ERROR", "=== ", "✗", " package", "atal", "Uncaught", "panicked at ", "rror", `"Action":"`, "PASS", "\x1b[", "***",
		"xception", "E   ", "panic:", "vulnerabilit", "Successfully installed", "up to date", "ERR!", "js:", ".go:", `File "`,
		"not ok", "●", "✕", "FAIL", ".py:", "✖",
	} {
		needles = append(needles, literal.Needle{Text: text})
	}
	return needles
}()

// newSignSearcher makes a searcher for findingSigns; nil if the processor cannot.
var newSignSearcher = literal.NewSearcher(findingSigns)

// Each line that a pattern below matches ends with one of ends or contains one of parts. They rule out lines that have
// a sign by chance, such as commands with -Werror.
var (
	ends  = [][]byte{[]byte("Error"), []byte("Exception")}
	parts = func() (texts [][]byte) {
		for _, text := range []string{
			"error: ", ": error", "al error", "error[", "npm error", "npm ERR!", "Error: ", "Error [", "Exception: ",
			"Exception [", "fatal: ", "Uncaught ", "panic: ", "FAIL", "ERROR ",
			"*** ", "not ok", ".go:", ".py:", `File "`, "E   ", "✕ ", "✗ ", "● ",
			" package", "up to date", "vulnerabilit", "Successfully installed ",
		} {
			texts = append(texts, []byte(text))
		}
		return texts
	}()
)

// mayMatter reports whether a line has one of these texts.
func mayMatter(line []byte) bool {
	return slices.ContainsFunc(parts, func(text []byte) bool { return bytes.Contains(line, text) }) ||
		slices.ContainsFunc(ends, func(text []byte) bool { return bytes.HasSuffix(line, text) })
}

// finding matches findings: those of compilers (gcc, clang, go, javac, tsc, rustc), of make and package managers, of
// test runners (go, pytest, cargo, TAP, jest, mocha), of uncaught exceptions.
var finding = content.Pattern(
	`^(?:\S+?[:(]\d+(?:[:,]\d+)?\)?: (?:fatal |internal )?error\b|\S+\.go:\d+:\d+: |(?:fatal )?error(?:\[\w+\])?: |` +
		`^make(?:\[\d+\])?: \*\*\* |npm (?:ERR!|error) \S|\s*--- FAIL: |FAIL[:\t]|panic: |(?:FAILED|ERROR) \S+|test \S.* \.\.\. FAILED|not ok\b|` +
		`^\s*[✕✗] |\s+● \S.* › |(?:[\w.]+\.)?\w*(?:Error|Exception)(?: \[\w+\])?(?:: |$)|Uncaught |fatal: |E {3,}\S|\S+\.py:\d+: \w+$)`,
)

// outcome matches the lines by which package managers say what they did. They are shown if the command succeeds too.
var outcome = content.Pattern(
	`^(?:(?:added|removed|changed) \d+ packages?\b|up to date\b|(?:found )?\d+ (?:\w+ severity )?vulnerabilit|` +
		`^Successfully installed \S)`,
)

// pythonFrame matches a line of a Python traceback; the last one before the exception is where it was raised.
var pythonFrame = content.Pattern(`^\s+File "[^"]+", line \d+`)

// library matches the frames of Python itself and of packages.
var library = content.Pattern(`/lib(?:64)?/python|-packages/|"<frozen `)

// maxOutcomes is how many lines of outcomes are shown.
const maxOutcomes = 4

// diagnostic matches the findings that no test prints: those of compilers and build tools.
var diagnostic = content.Pattern(
	`^(?:\S+?[:(]\d+(?:[:,]\d+)?\)?: (?:fatal |internal )?error\b|\S+\.go:\d+:\d+: |make|npm|FAIL[:\t])`,
)

// thrown matches the message of an error after which the frames of its stack may follow.
var thrown = content.Pattern(`^(?:(?:[\w.]+\.)?\w*(?:Error|Exception)\b|Uncaught )`)

// scriptLine matches the line that node prints above the line of a script that failed.
var scriptLine = content.Pattern(`^(?:file://)?/\S+\.[cm]?js:\d+$`)

// errorFrame matches a frame of the stack of JavaScript or Java.
var errorFrame = content.Pattern(`^\s+at .*:\d+\)?(?: \{)?$`)

// Lines between the parts of an error.
const (
	maxTrace = 12 // from the message or a frame to the next frame
	maxAbove = 6  // from the place in a script to the message
)

func (f *findings) add(b []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 { // then it would take long to look for the last one
		f.addLines(b)
		return
	}
	if len(f.open) > 0 { // the line that began in the last block
		f.addLines(b[:i+1])
		b = b[i+1:]
	}
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	next := signFinder(whole)
	for at := 0; at < len(whole); {
		if f.trace == 0 && !f.tests.open() { // then a line without a sign changes nothing
			sign, lines := next(at)
			f.line += int64(lines)
			if sign == len(whole) {
				break
			}
			at += bytes.LastIndexByte(whole[at:sign], '\n') + 1
		}
		end := at + bytes.IndexByte(whole[at:], '\n') + 1
		end += int(f.addRepeated(whole[at:end], digest.EqualLines(whole, end, end-at))) * (end - at)
		at = end
	}
	f.addLines(b[len(whole):])
}

// addRepeated inspects a line that n equal ones follow. It returns how many of these it counted too, all or none.
func (f *findings) addRepeated(line []byte, n int64) int64 {
	if n == 0 {
		f.addLines(line)
		return 0
	}
	others, held, before := f.others.count, f.held.count, f.depends()
	f.addLines(line)
	if f.depends() != before || f.tests.open() || f.tests.goTests.current != "" || len(f.outcomes) > 0 ||
		mayBeTest(content.TerminalLine(line)) || f.above.line > 0 && f.line-f.above.line <= maxAbove {
		return 0
	}
	f.line += n // each of these lines would do the same again
	f.others.count += n * (f.others.count - others)
	f.held.count += n * (f.held.count - held)
	return n
}

// dependency is the state that decides what a line without a relation to tests does, except the line above it.
type dependency struct {
	trace, others, held       int
	frame, own, above, script quoted
}

func (f *findings) depends() dependency {
	return dependency{f.trace, len(f.others.list), len(f.held.list), f.frame, f.own, f.above, f.script}
}

// signFinder returns a function that returns the position of a sign in the first line with one, at or after the line at
// from, and the number of lines before it. Without one it returns the end of the block.
func signFinder(whole []byte) func(from int) (at, lines int) {
	if newSignSearcher == nil {
		finders := literal.NewFinders(findingSigns)
		return func(from int) (at, lines int) {
			at, _ = finders.Find(whole, from)
			return at, bytes.Count(whole[from:at], []byte{'\n'})
		}
	}
	searcher := newSignSearcher()
	return func(from int) (at, lines int) {
		at, _, lines = searcher.Find(whole, from)
		return at, lines
	}
}

// addLines inspects each line of a block.
func (f *findings) addLines(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if room := maxFindingLine + 1 - len(f.open); len(b) > room {
				b, f.cut = b[:max(room, 0)], true
			}
			f.open = append(f.open, b...)
			return
		}
		line := b[:i]
		if len(f.open) > 0 {
			line = append(f.open, line...)
		}
		if f.line++; len(line) <= maxFindingLine && !f.cut {
			f.inspect(content.TerminalLine(line))
		}
		f.open, f.cut, b = f.open[:0], false, b[i+1:]
	}
}

// inspect adds a line if it is a finding.
func (f *findings) inspect(line []byte) {
	if f.inspectTest(line) {
		return
	}
	if f.trace > 0 {
		f.addFrame(line)
	}
	if len(line) > 0 && (line[0] == '/' || line[0] == 'f') && scriptLine().Match(line) && !foreign().Match(line) {
		f.above = f.quote(line)
		return
	}
	if !mayMatter(line) {
		return
	}
	if pythonFrame().Match(line) {
		if f.frame = f.quote(line); !library().Match(line) {
			f.own = f.frame
		}
	} else if outcome().Match(line) {
		if f.outcomes = append(f.outcomes, f.quote(line).String()); len(f.outcomes) > maxOutcomes {
			f.outcomes = f.outcomes[1:] // the last ones count
		}
	}
	if finding().Match(line) && !f.tests.goTests.prints(f.quote(line)) {
		f.found(line)
	}
}

// inspectTest adds a line that is about a test, and reports whether it is.
func (f *findings) inspectTest(line []byte) (is bool) {
	if f.tests.open() || mayBeTest(line) {
		if is = f.tests.add(line, f.line); is && (len(line) == 0 || line[0] != 'F' && line[0] != 'E') {
			return true
		}
		if runEnd().Match(line) || runStart().Match(line) {
			f.endRun()
		}
	}
	return is
}

// quote returns the current line.
func (f *findings) quote(line []byte) quoted { return quoted{f.line, clipped(line)} }

// found adds a finding, behind the frames of the Python traceback that it ends.
func (f *findings) found(line []byte) {
	at := f.quote(line)
	f.endTrace()
	if f.frame.line > 0 {
		if f.own.line > 0 && f.own != f.frame {
			f.held.add(f.own)
		}
		f.held.add(f.frame)
		f.frame, f.own = quoted{}, quoted{}
	}
	if diagnostic().Match(line) {
		f.others.add(at)
		return
	}
	if f.held.add(at); thrown().Match(line) {
		if f.trace = maxTrace; f.above.line > 0 && at.line-f.above.line <= maxAbove {
			f.script = f.above
		}
	}
}

// addFrame reads a line after an error. The first frame that is not [foreign] is a finding.
func (f *findings) addFrame(line []byte) {
	switch f.trace--; {
	case !errorFrame().Match(line):
	case foreign().Match(line):
		f.trace = maxTrace
	default:
		f.held.add(f.quote(line))
		f.trace, f.script = 0, quoted{}
	}
	if f.trace == 0 {
		f.endTrace()
	}
}

// endTrace ends a stack. If no frame of it was a finding, the line of the script that node printed above it is one.
func (f *findings) endTrace() {
	if f.trace = 0; f.script.line > 0 {
		f.held.add(f.script)
	}
	f.script = quoted{}
}

// fewLines are the first maxFindings lines, and the number of all.
type fewLines struct {
	list  []quoted
	count int64
}

func (l *fewLines) add(q quoted) {
	if l.count++; len(l.list) < maxFindings {
		l.list = append(l.list, q)
	}
}

// endRun ends a test run, or the output before one. If a test failed in it, held findings are dropped: the tests may
// have printed them.
func (f *findings) endRun() {
	f.endTrace()
	if !f.tests.fresh {
		f.others.list, f.others.count = append(f.others.list, f.held.list...), f.others.count+f.held.count
	}
	f.held, f.tests.fresh = fewLines{}, false
}

// close returns the findings: the failed tests, then the others and how many more there are.
func (f *findings) close() []string {
	if len(f.open) > 0 {
		f.add([]byte{'\n'})
	}
	list := f.tests.report()
	f.endRun()
	lines := f.others.list
	slices.SortStableFunc(lines, func(a, b quoted) int { return cmp.Compare(a.line, b.line) })
	shown := lines[:min(len(lines), maxFindings)]
	for _, q := range shown {
		list = append(list, q.String())
	}
	if more := f.others.count - int64(len(shown)); more > 0 {
		list = append(list, fmt.Sprintf("… and %s like these", content.Plural(more, "more line", "more lines")))
	}
	return list
}
