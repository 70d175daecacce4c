package shell

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxLogs is how many Go tests run at a time whose logs are held.
const maxLogs = 1000

// testLog is the log of a Go test: its first lines and the last one, each with the lines that continue it.
type testLog struct {
	notes []quoted
	more  int // lines between them
}

func (l *testLog) add(q quoted) {
	q.text = content.ClipBytes(q.text, findingWidth)
	if len(l.notes) == maxNotes {
		l.notes = l.notes[:maxNotes-1]
		l.more++
	}
	l.notes = append(l.notes, q)
}

// extend appends a line that continues the last one.
func (l *testLog) extend(text string) {
	if last := &l.notes[len(l.notes)-1]; len(last.text) < findingWidth {
		last.text = content.ClipBytes(strings.TrimSpace(last.text+" "+text), findingWidth)
	}
}

// goTests reads the output of the tests of Go packages, one package after the other. A test without -v is named before
// its log; with -v, its log comes first, and only the result says whether it failed.
type goTests struct {
	pkg     string              // "": it is named behind its tests
	seen    map[string]bool     // the tests that began, with -v
	current string              // the test that writes now, with -v; "": it is unknown
	at      int64               // the line that says so
	running map[string]*testLog // logs of tests without a result, with -v
	failed  []*failure          // of the package
	blocks  []*failure          // the failed tests whose block is open, the outermost first
	last    *testLog            // whose last line may be continued; nil: none
	indent  int                 // of that line

	panics   *testLog // log of the test that panicked, until the place is known
	function string   // function of the frame whose place is on the next line
	timedOut string   // the message of a time-out, which the names of the running tests follow; "": none
}

func (g *goTests) open() bool {
	return g.last != nil || g.panics != nil || g.timedOut != "" || len(g.blocks) > 0
}

var (
	// goPackage matches the result of a package.
	goPackage = content.Pattern(`^(?:FAIL|ok  )\t(\S+)`)
	// goRunning matches a test in the list of those that a time-out ended.
	goRunning = content.Pattern(`^\t\t(\S+) \([\dhms.]+\)$`)
)

// add reads a line, and reports whether it is about a test.
func (g *goTests) add(f *failures, line []byte, at int64) bool {
	if g.event(line, at) {
		return true
	}
	if string(line) == "PASS" && strings.HasPrefix(g.current, "Benchmark") { // it has no result of its own
		g.close()
		g.current = ""
	}
	if verdict, name, depth := g.resultOf(line); name != "" {
		g.result(f, verdict == "FAIL", name, depth, quoted{at, clipped(line)})
		return true
	}
	if m := goPackage().FindSubmatch(line); m != nil {
		g.end(f, string(m[1]))
		return false // it is a finding too
	}
	if g.panics != nil || g.timedOut != "" {
		return g.addPanic(f, line, at)
	}
	if indent := goLog(line); indent > 0 {
		return g.addLog(indent, quoted{at, clipped(line)})
	}
	// With -v, a line of a log may follow what the test printed without a newline.
	if i := bytes.Index(line, []byte("    ")); i > 0 && g.current != "" && goLog(line[i:]) > 0 {
		return g.addLog(4, quoted{at, clipped(line[i:])})
	}
	blank := len(bytes.TrimSpace(line)) == 0
	if g.last != nil && (blank || g.continues(line)) {
		g.last.extend(clipped(line))
		return true
	}
	if g.last = nil; string(line) == "got:" && len(g.blocks) > 0 { // of an example
		g.last, g.indent = &g.blocks[0].log, -4
		g.last.add(quoted{at, "got:"})
		return true
	}
	if bytes.HasPrefix(line, []byte("panic: ")) && g.startPanic(line, at) {
		return true
	}
	if !blank && line[0] != ' ' {
		g.blocks = nil
	}
	return false
}

// event reads a line of -v that names the test that writes the next lines, and reports whether it is one.
func (g *goTests) event(line []byte, at int64) bool {
	rest, ok := bytes.CutPrefix(line, []byte("=== "))
	if !ok {
		return false
	}
	word, name, _ := strings.Cut(string(rest), " ")
	if !slices.Contains([]string{"RUN", "CONT", "NAME", "PAUSE"}, word) {
		return false
	}
	g.close()
	if g.current, g.at = strings.TrimSpace(name), at; g.seen == nil {
		g.seen = map[string]bool{}
	}
	if g.seen[g.current] = true; word == "PAUSE" {
		g.current = ""
	}
	return true
}

// goLog returns the indentation of a line of a test's log, "    a_test.go:3: text"; 0 if it is none.
func goLog(line []byte) int {
	rest := bytes.TrimLeft(line, " \t")
	file, text, ok := bytes.Cut(rest, []byte(".go:"))
	number, _, ends := bytes.Cut(text, []byte(": "))
	if !ok || !ends || bytes.ContainsAny(file, " \t") || len(number) == 0 || len(bytes.Trim(number, "0123456789")) > 0 {
		return 0
	}
	return len(line) - len(rest)
}

// resultOf returns the result of a test, "    --- FAIL: TestA/b (0.00s)", and how many tests it is below; "" if it is
// none. With -v, it may follow what the test printed without a newline, and tests print what looks like a result.
func (g *goTests) resultOf(line []byte) (verdict, name string, depth int) {
	before, rest, _ := bytes.Cut(line, []byte("--- "))
	word, rest, _ := bytes.Cut(rest, []byte(": "))
	test, took, ok := bytes.Cut(rest, []byte(" ("))
	verdict, name = string(word), string(test)
	known := g.seen[name] || len(g.seen) == 0 && len(bytes.TrimLeft(before, " ")) == 0
	if !ok || !known || !bytes.HasSuffix(took, []byte("s)")) || goLog(line) > 0 ||
		verdict != "FAIL" && verdict != "PASS" && verdict != "SKIP" {
		return "", "", 0
	}
	return verdict, name, (len(before) - len(bytes.TrimLeft(before, " "))) / 4
}

// continues reports whether a line that is not blank continues the log line before it.
func (g *goTests) continues(line []byte) bool {
	indent := len(line) - len(bytes.TrimLeft(line, " \t"))
	return indent >= g.indent+4 && string(line) != "FAIL"
}

// clipped returns a line as it is quoted.
func clipped(line []byte) string {
	return content.ClipBytes(string(bytes.TrimSpace(line)), findingWidth)
}

// close makes the next lines continue nothing.
func (g *goTests) close() { g.blocks, g.last, g.panics, g.timedOut = nil, nil, nil, "" }

// result adds the result of a test, which is below depth others.
func (g *goTests) result(f *failures, failed bool, name string, depth int, at quoted) {
	log := g.running[name]
	delete(g.running, name)
	g.last, g.panics = nil, nil
	if depth == 0 {
		g.current = ""
	}
	if g.blocks = g.blocks[:min(depth, len(g.blocks))]; !failed {
		return
	}
	test := f.fail(strings.TrimSpace(g.pkg+" "+name), at)
	if test.name = name; log != nil {
		test.log = *log
	}
	g.failed = append(g.failed, test)
	g.blocks = append(g.blocks, test)
}

// addLog adds a line of a log to that of its test, and returns false if no test has one. indent is the line's.
func (g *goTests) addLog(indent int, q quoted) bool {
	var log *testLog
	switch depth := indent/4 - 1; {
	case g.current != "":
		log = g.log(g.current)
	case depth >= 0 && depth < len(g.blocks):
		log = &g.blocks[depth].log
	default:
		return false
	}
	g.last, g.indent = log, indent
	log.add(q)
	return true
}

// log returns the log of a running test.
func (g *goTests) log(name string) *testLog {
	log := g.running[name]
	if log == nil {
		log = &testLog{}
		if g.running == nil || len(g.running) >= maxLogs {
			g.running = map[string]*testLog{}
		}
		g.running[name] = log
	}
	return log
}

// prints reports whether a test printed a line that would be a finding, with -v: the result of the test decides then,
// and the line goes to its log.
func (g *goTests) prints(q quoted) bool {
	if g.current == "" {
		return false
	}
	g.log(g.current).add(q)
	return true
}

// startPanic reads the message of a panic, and reports whether a test panicked.
func (g *goTests) startPanic(line []byte, at int64) bool {
	if bytes.HasPrefix(line, []byte("panic: test timed out")) {
		g.close()
		g.timedOut, g.current = clipped(line), ""
		return false
	}
	if len(g.blocks) == 0 {
		return false
	}
	g.panics = &g.blocks[len(g.blocks)-1].log
	g.panics.add(quoted{at, clipped(line)})
	g.function = ""
	return true
}

// addPanic reads a line of a stack, up to the first function outside Go's own packages, or of the list of tests that
// ran when the time was over.
func (g *goTests) addPanic(f *failures, line []byte, at int64) bool {
	text := string(line)
	switch {
	case g.timedOut != "":
		if m := goRunning().FindSubmatch(line); m != nil {
			test := f.fail(strings.TrimSpace(g.pkg+" "+string(m[1])), quoted{at, clipped(line) + ": " + g.timedOut})
			test.name = string(m[1])
			if log := g.running[test.name]; log != nil {
				test.log = *log
			}
			g.failed, f.broken = append(g.failed, test), true
			return true
		}
		if len(line) == 0 || line[0] != '\t' {
			g.timedOut = ""
		}
		return false
	case !strings.HasPrefix(text, "\t"):
		g.function = text
	case g.function != "" && strings.Contains(text, ".go:") && !fromGo(g.function):
		place, _, _ := strings.Cut(strings.TrimSpace(text), " +0x")
		g.panics.extend("at " + place)
		g.panics = nil
	}
	return true
}

// fromGo reports whether the function of a stack's frame belongs to Go itself: no path before its package.
func fromGo(function string) bool {
	return slices.ContainsFunc(
		[]string{"panic(", "testing.", "runtime.", "goroutine ", "created by ", "internal/", "reflect.", "log."},
		func(own string) bool { return strings.HasPrefix(function, own) },
	)
}

// end ends the tests of a package, or with an empty name those of the whole output. If a test has no result and none
// has failed, that test ended the program.
func (g *goTests) end(f *failures, name string) {
	if log := g.running[g.current]; len(g.failed) == 0 && g.current != "" {
		test := f.fail(strings.TrimSpace(g.pkg+" "+g.current), quoted{g.at, g.current + ": no result"})
		test.name = g.current
		if f.broken = true; log != nil {
			test.log = *log
		}
		g.failed = append(g.failed, test)
	}
	for _, test := range g.failed {
		if full := name + " " + test.name; name != "" && g.pkg == "" && f.byName[test.key] == test && f.byName[full] == nil {
			delete(f.byName, test.key)
			test.key, f.byName[full] = full, test
		}
	}
	*g = goTests{}
}

// addEvent reads a line of go test -json, and reports whether it is one.
func (f *failures) addEvent(line []byte, at int64) bool {
	var event struct{ Action, Package, Test, Output string }
	if !bytes.Contains(line, []byte(`"Action":"`)) || json.Unmarshal(line, &event) != nil || event.Package == "" {
		return false
	}
	g := f.events[event.Package]
	if g == nil {
		if f.events == nil || len(f.events) >= maxLogs {
			f.events = map[string]*goTests{}
		}
		g = &goTests{pkg: event.Package}
		f.events[event.Package] = g
	}
	switch text := strings.TrimSuffix(event.Output, "\n"); {
	case event.Action == "output":
		if last := len(g.blocks) - 1; g.current != event.Test && (last < 0 || g.blocks[last].name != event.Test) {
			g.close() // tests may write in turns
			g.current, g.at = event.Test, at
		}
		g.add(f, []byte(text), at)
	case event.Action == "fail" && event.Test == "":
		g.end(f, event.Package)
		delete(f.events, event.Package)
		f.fresh = false // what tests print is in events
	}
	return true
}
