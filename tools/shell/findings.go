package shell

import (
	"bytes"
	"fmt"
	"slices"

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
	lines  []string
	count  int64
	line   int64  // lines that have ended
	open   []byte // the line that has not ended, as far as it is held
	cut    bool   // open is not all of it
	detail string // a line of a Go test's log; it belongs to the failure after or before it
	after  bool   // the line before reported a failure
	frame  string // the last frame of a Python traceback
	own    string // the last one that is not in a library

	outcomes []string
}

// hints are texts of which each line that [findings.inspect] looks for has at least one. Lines with escape sequences
// are all inspected: a sequence may divide a hint. The order affects speed only: a searcher takes each eighth as one
// set.
var hints = func() (needles []literal.Needle) {
	for _, text := range []string{
		"●", "\x1b[", ".go:", "✗", "Uncaught", "E   ", "not ok", `File "`, "panic:", ".py:", "FAIL", "✕", "***", "ERROR",
		"rror", " package", "atal", "up to date", "ERR!", "Successfully installed", "vulnerabilit", "xception",
	} {
		needles = append(needles, literal.Needle{Text: text})
	}
	return needles
}()

// newHintSearcher makes a searcher for hints; nil if the processor cannot.
var newHintSearcher = literal.NewSearcher(hints)

// ends and parts are texts of which each line that a pattern below matches has at least one, at its end or anywhere.
// They are fewer lines than those with hints: compilers are often told -Werror, which says nothing.
var (
	ends  = [][]byte{[]byte("Error"), []byte("Exception")}
	parts = func() (texts [][]byte) {
		for _, text := range []string{
			"error: ", ": error", "al error", "error[", "npm error", "npm ERR!", "Error: ", "Exception: ", "fatal: ",
			"Uncaught ", "panic: ", "FAIL", "ERROR ", "*** ", "not ok", ".go:", ".py:", `File "`, "E   ", "✕ ", "✗ ", "● ",
			" package", "up to date", "vulnerabilit", "Successfully installed ",
		} {
			texts = append(texts, []byte(text))
		}
		return texts
	}()
)

// mayMatter says whether a line has one of these texts.
func mayMatter(line []byte) bool {
	return slices.ContainsFunc(parts, func(text []byte) bool { return bytes.Contains(line, text) }) ||
		slices.ContainsFunc(ends, func(text []byte) bool { return bytes.HasSuffix(line, text) })
}

// finding matches the lines: of compilers (gcc, clang, go, javac, tsc, rustc), of make and package managers, of test
// runners (go, pytest, cargo, TAP, jest, mocha), of uncaught exceptions.
var finding = content.Pattern(
	`^\S+?[:(]\d+(?:[:,]\d+)?\)?: (?:fatal |internal )?error\b|^\S+\.go:\d+:\d+: |^(?:fatal )?error(?:\[\w+\])?: |` +
		`^make(?:\[\d+\])?: \*\*\* |^npm (?:ERR!|error) \S|^\s*--- FAIL: |^FAIL[:\t]|^panic: |^(?:FAILED|ERROR) \S+|^test \S.* \.\.\. FAILED|^not ok\b|` +
		`^\s*[✕✗] |^\s+● \S.* › |^(?:[\w.]+\.)?\w*(?:Error|Exception)(?:: |$)|^Uncaught |^fatal: |^E {3,}\S|^\S+\.py:\d+: \w+$`,
)

// outcome matches the lines by which package managers say what they did. They are shown if the command succeeds too.
var outcome = content.Pattern(
	`^(?:added|removed|changed) \d+ packages?\b|^up to date\b|^(?:found )?\d+ (?:\w+ severity )?vulnerabilit|` +
		`^Successfully installed \S`,
)

// pythonFrame matches a line of a Python traceback; the last one before the exception is where it was raised.
var pythonFrame = content.Pattern(`^\s+File "[^"]+", line \d+`)

// library matches the frames of what Python or a package brings along.
var library = content.Pattern(`/lib(?:64)?/python|-packages/|"<frozen `)

// maxOutcomes is how many lines of outcomes are shown.
const maxOutcomes = 4

// goDetail matches a line of a Go test's log.
var goDetail = content.Pattern(`^\s+\S+_test\.go:\d+: `)

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
	next := hintFinder(whole)
	for at := 0; at < len(whole); {
		if !f.after && f.detail == "" { // then a line without a hint changes nothing
			hint, lines := next(at)
			f.line += int64(lines)
			if hint == len(whole) {
				break
			}
			at += bytes.LastIndexByte(whole[at:hint], '\n') + 1
		}
		end := at + bytes.IndexByte(whole[at:], '\n') + 1
		f.addLines(whole[at:end])
		at = end
	}
	f.addLines(b[len(whole):])
}

// hintFinder returns a function that returns the position of a hint in the first line with one, at or after the line at
// from, and the number of lines before it. Without one it returns the end of the block.
func hintFinder(whole []byte) func(from int) (at, lines int) {
	if newHintSearcher == nil {
		finders := literal.NewFinders(hints)
		return func(from int) (at, lines int) {
			at, _ = finders.Find(whole, from)
			return at, bytes.Count(whole[from:at], []byte{'\n'})
		}
	}
	searcher := newHintSearcher()
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
	if !mayMatter(line) {
		f.pass(line)
		return
	}
	if goDetail().Match(line) {
		if f.detail = f.text(line); f.after {
			f.quote(f.detail)
			f.detail, f.after = "", false
		}
		return
	}
	if pythonFrame().Match(line) {
		if f.frame = f.text(line); !library().Match(line) {
			f.own = f.frame
		}
	} else if outcome().Match(line) {
		if f.outcomes = append(f.outcomes, f.text(line)); len(f.outcomes) > maxOutcomes {
			f.outcomes = f.outcomes[1:] // the last ones count
		}
	}
	if !finding().Match(line) {
		f.pass(line)
		return
	}
	f.count++
	if f.frame != "" {
		if f.own != "" && f.own != f.frame {
			f.quote(f.own)
		}
		f.quote(f.frame)
		f.frame, f.own = "", ""
	}
	f.after = bytes.Contains(line, []byte("--- FAIL: "))
	f.quote(f.text(line))
	if f.after && f.detail != "" {
		f.quote(f.detail)
		f.after = false
	}
	f.detail = ""
}

// pass notes a line that is no finding: what belongs to a failure ends there.
func (f *findings) pass(line []byte) {
	if f.detail != "" && !bytes.HasPrefix(line, []byte("    ")) {
		f.detail = ""
	}
	f.after = false
}

// text returns a line with its number.
func (f *findings) text(line []byte) string {
	return fmt.Sprintf("line %d: %s", f.line, content.ClipBytes(string(bytes.TrimSpace(line)), findingWidth))
}

func (f *findings) quote(text string) {
	if len(f.lines) < maxFindings {
		f.lines = append(f.lines, text)
	}
}

// close returns the findings, and how many more there are.
func (f *findings) close() []string {
	if len(f.open) > 0 {
		f.add([]byte{'\n'})
	}
	if more := f.count - int64(len(f.lines)); more > 0 {
		return append(f.lines, fmt.Sprintf("… and %s like these", content.Plural(more, "more line", "more lines")))
	}
	return f.lines
}
