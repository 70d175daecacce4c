package logs

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits on the panics held in memory.
const (
	panicsKept = 6   // maximum number of incidents listed: the first ones and the last
	panicLines = 400 // maximum number of lines of one stack; further lines are ordinary lines
)

// incident is a panic, an uncaught exception or a traceback: a head line and the lines of the stack.
type incident struct {
	line, end int64
	head      string
	detail    string // cause, or location
	kind      incidentKind
	seen      int64  // number of later incidents with the same head
	last      int64  // line of the last such incident
	library   bool   // detail is a frame of node or of a package; the first one of another file replaces it
	fallback  string // location used if detail is empty
}

type incidentKind uint8

const (
	single    incidentKind = iota // a single line
	goPanic                       // panic: …, goroutine 1 [running]:, functions and their file:line
	traceback                     // Python: the exception is on the last line
	frames                        // Java, JavaScript, .NET: lines that begin with "at"
	rustPanic                     // thread 'main' panicked at …
	incidentKinds
)

// panics finds incidents line by line.
type panics struct {
	n    [incidentKinds]int64
	list []*incident
	open *incident

	again, like *incident // the last incident that is not listed, and the one like it

	before     []byte // the previous line; it becomes the head of a stack that begins without a head
	beforeLine int64
	function   string // function of the Go frame whose file:line is on the next line
}

// add reports whether a line is part of an incident, and records the incident. The line is passed without its time;
// marked reports whether the line can contain one of [marks].
func (p *panics) add(b []byte, at int64, stamped, marked bool) bool {
	if p.open != nil {
		if p.continues(b, at, stamped) {
			return true
		}
		p.open = nil
	}
	if kind, ok := incidentHead(b, stamped, marked); ok {
		p.begin(b, at, kind)
		return true
	}
	if isFrame(b) && p.before != nil && at == p.beforeLine+1 && len(p.before) > 0 {
		p.begin(p.before, p.beforeLine, frames)
		p.open.end = at
		p.open.detail = strings.TrimSpace(string(b[:min(len(b), digest.HeadBytes)]))
		p.open.library = isLibrary(b)
		return true
	}
	p.setPrevious(at, b)
	return false
}

// setPrevious stores b, which has the number at and is no part of a stack, as the line before the next one.
func (p *panics) setPrevious(at int64, b []byte) {
	p.before, p.beforeLine = append(p.before[:0], b[:min(len(b), digest.HeadBytes)]...), at
}

// interrupt closes the open incident. The following lines belong to another file.
func (p *panics) interrupt() { p.open, p.before = nil, nil }

func (p *panics) begin(b []byte, at int64, kind incidentKind) {
	p.n[kind]++
	p.function = ""
	p.open = &incident{line: at, end: at, head: string(bytes.TrimSpace(b[:min(len(b), digest.HeadBytes)])), kind: kind}
	for _, seen := range p.list {
		if sameHead(seen.head, p.open.head) && kind != traceback {
			seen.seen++
			seen.last = at
			p.again, p.like = p.open, seen
			return
		}
	}
	if len(p.list) == panicsKept {
		p.list[panicsKept-1] = p.open
		return
	}
	p.list = append(p.list, p.open)
}

// dropBare drops the messages of Go panics from a line on that no stack follows: a test that passes printed them.
func (p *panics) dropBare(from int64) {
	bare := func(i *incident) bool { return i.kind == goPanic && i.line >= from && i.end == i.line }
	for i := len(p.list) - 1; i >= 0 && bare(p.list[i]); i-- {
		p.list = p.list[:i]
		p.n[goPanic]--
	}
	if p.again != nil && bare(p.again) {
		p.like.seen--
		p.n[goPanic]--
		p.again = nil
	}
	p.interrupt()
}

func sameHead(a, b string) bool {
	return a == b || len(a) == len(b) && signature([]byte(a)) == signature([]byte(b))
}

// continues reports whether a line belongs to the open incident, and stores the details it finds.
func (p *panics) continues(b []byte, at int64, stamped bool) bool {
	i := p.open
	if at-i.line > panicLines {
		return false
	}
	blank := len(bytes.TrimSpace(b)) == 0
	indented := len(b) > 0 && (b[0] == ' ' || b[0] == '\t')
	switch i.kind {
	case single:
		return false
	case goPanic:
		if blank {
			return true // end moves past the blank line only if the stack continues
		}
		if !p.goLine(b, indented) {
			return false
		}
	case traceback:
		text := strings.TrimSpace(string(b[:min(len(b), digest.HeadBytes)]))
		switch {
		case blank:
			return false
		case !indented:
			i.head, i.end = "Traceback: "+text, at
			p.open = nil
			return true
		case strings.HasPrefix(text, "File "):
			i.detail = text
		}
	case rustPanic:
		switch {
		case i.detail == "" && !blank && !stamped:
			i.detail = string(b[:min(len(b), digest.HeadBytes)])
		case bytes.HasPrefix(b, []byte("stack backtrace:")), bytes.HasPrefix(b, []byte("note: ")), indented && !blank:
		default:
			return false
		}
	default:
		switch {
		case bytes.HasPrefix(b, []byte("Caused by: ")):
			i.detail = string(b[:min(len(b), digest.HeadBytes)])
		case isFrame(b) && (i.detail == "" || i.library && !isLibrary(b)):
			i.detail = strings.TrimSpace(string(b[:min(len(b), digest.HeadBytes)]))
			i.library = isLibrary(b)
		case indented && !blank && !testVerdict().Match(b):
		default:
			return false
		}
	}
	i.end = at
	return true
}

// goLine reports whether a line belongs to a Go stack, and records the first location outside the standard library.
func (p *panics) goLine(b []byte, indented bool) bool {
	text := string(b[:min(len(b), digest.HeadBytes)])
	switch {
	case indented:
		place := strings.TrimSpace(text)
		if p.open.detail == "" && p.function != "" && strings.Contains(place, ".go:") &&
			!strings.HasPrefix(p.function, "panic(") && !strings.HasPrefix(p.function, "runtime.") {
			place, _, _ = strings.Cut(place, " +0x")
			place = functionName(p.function) + " " + place
			if strings.Contains(place, "/go/src/") || strings.HasPrefix(p.function, "testing.") { // from Go itself
				p.open.fallback = cmp.Or(p.open.fallback, place)
			} else {
				p.open.detail = place
			}
		}
	case strings.HasPrefix(text, "goroutine ") && strings.HasSuffix(text, ":"),
		strings.HasPrefix(text, "[signal "), strings.HasPrefix(text, "created by "),
		strings.HasPrefix(text, "exit status "), strings.HasPrefix(text, "runtime: "),
		strings.HasPrefix(text, "panic: "), strings.HasPrefix(text, "...additional frames elided"):
	case strings.HasSuffix(text, ")") && !strings.Contains(text, " ") || strings.Contains(text, "({0x") ||
		strings.Contains(text, "(0x") || strings.HasSuffix(text, "(...)"):
		p.function = text
	default:
		return false
	}
	return true
}

// functionName returns the function of a Go frame without arguments and directory.
func functionName(s string) string {
	if i := strings.LastIndexByte(s, '('); i > 0 {
		s = s[:i]
	}
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		s = s[i+1:]
	}
	return s
}

// isFrame reports whether a line is a stack frame such as "\tat com.example.A.b(A.java:12)" or " at f
// (/src/a.js:3:4)", but not "\tat := f(x)".
func isFrame(b []byte) bool {
	if len(b) < 6 || b[0] != ' ' && b[0] != '\t' {
		return false
	}
	b = bytes.TrimLeft(b, " \t")
	if !bytes.HasPrefix(b, []byte("at ")) || bytes.Contains(b, []byte("= ")) ||
		bytes.IndexByte([]byte("{;,"), b[len(b)-1]) >= 0 {
		return false
	}
	i := bytes.IndexByte(b, '(')
	// JavaScript and Mono put the location in brackets; "at noon (local time)" is prose.
	if i > 0 && b[i-1] == ' ' {
		where := b[i:]
		return bytes.IndexByte(where, ':') > 0 || bytes.HasPrefix(where, []byte("(<anonymous>")) ||
			bytes.HasPrefix(where, []byte("(native")) ||
			bytes.HasPrefix(where, []byte("(index ")) || bytes.HasPrefix(where, []byte("() ["))
	}
	return i > 0 || bytes.Contains(b, []byte("js:")) || bytes.Contains(b, []byte("ts:"))
}

// isLibrary reports whether a frame is of node itself or of an installed package.
func isLibrary(b []byte) bool {
	return bytes.Contains(b, []byte("node:")) || bytes.Contains(b, []byte("node_modules"))
}

// incidentHeads lists how runtimes begin the message of an incident.
var incidentHeads = []struct {
	start string
	kind  incidentKind
}{
	{"panic: ", goPanic},
	{"fatal error: ", goPanic},
	{"SIGSEGV: ", goPanic},
	{"SIGABRT: ", goPanic},
	{"SIGQUIT: ", goPanic},
	{"Segmentation fault", single},
	{"Traceback (most recent call last)", traceback},
	{"terminate called ", single},
	{"Exception in thread ", frames},
	{"Unhandled exception", frames},
	{"Uncaught ", frames},
	{"UnhandledPromiseRejection", frames},
	{"WARNING: DATA RACE", single},
}

// incidentHead reports whether a line begins an incident. It matches the messages that runtimes print, not prose about
// panics.
func incidentHead(b []byte, stamped, marked bool) (incidentKind, bool) {
	if len(b) < 6 {
		return 0, false
	}
	if bytes.IndexByte([]byte("pfSTtEUW"), b[0]) >= 0 {
		for _, h := range incidentHeads {
			if bytes.HasPrefix(b, []byte(h.start)) {
				return h.kind, true
			}
		}
	}
	if !marked {
		if b[0] == 'O' && isKernelCrash(b) {
			return single, true
		}
		return 0, false
	}
	return incidentWithin(b, stamped)
}

// inLiteral reports whether b[i] is inside a string or a comment of source code. A line with a time is a log line, not
// source.
func inLiteral(b []byte, i int, stamped bool) bool {
	if stamped {
		return false
	}
	before := b[:i]
	return bytes.Count(before, []byte{'"'})%2 != 0 || bytes.Count(before, []byte{'`'})%2 != 0 ||
		bytes.Contains(before, []byte("// "))
}

// incidentWithin finds a panic or crash message that follows other words on its line.
func incidentWithin(b []byte, stamped bool) (incidentKind, bool) {
	if i := bytes.Index(b, []byte("panic")); i >= 0 {
		rest := b[i:]
		switch {
		case inLiteral(b, i, stamped):
		case bytes.HasPrefix(rest, []byte("panicked at ")) && bytes.Contains(b[:i], []byte("thread '")):
			return rustPanic, true
		case bytes.HasPrefix(rest, []byte("panic serving ")), bytes.HasPrefix(
			rest, []byte("panic: runtime error: "),
		), i > 0 && bytes.Contains(b, []byte("Kernel panic - ")):
			return goPanic, true
		}
		return 0, false
	}
	if i := bytes.IndexByte(b, '('); i >= 0 {
		switch rest := b[i:]; {
		case inLiteral(b, i, stamped):
		case bytes.HasPrefix(rest, []byte("(most recent call last)")) && bytes.HasSuffix(b[:i], []byte("Traceback ")):
			return traceback, true
		case bytes.Contains(rest, []byte("(core dumped)")):
			return single, true
		}
	}
	kernel := bytes.Contains(b[:min(len(b), levelWithin)], []byte("kernel: "))
	if (kernel || b[0] == 'O') && isKernelCrash(b) {
		return single, true
	}
	return 0, false
}

func isKernelCrash(b []byte) bool {
	return bytes.Contains(b, []byte("Out of memory: Kill")) || bytes.Contains(b, []byte(" segfault at "))
}

// total returns the counts of incidents, such as "2 panics", "1 stack trace".
func (p *panics) total() []string {
	var out []string
	if n := p.n[goPanic] + p.n[rustPanic]; n > 0 {
		out = append(out, content.Plural(n, "panic", "panics"))
	}
	if n := p.n[traceback] + p.n[frames]; n > 0 {
		out = append(out, content.Plural(n, "stack trace", "stack traces"))
	}
	if n := p.n[single]; n > 0 {
		out = append(out, content.Plural(n, "crash", "crashes"))
	}
	return out
}

// lines returns one line per incident, with the line numbers of the incident.
func (p *panics) lines(s *digest.Summary) []string {
	var out []string
	for _, i := range p.list {
		line := "line "
		if i.end > i.line {
			line = "lines "
		}
		line += digest.Span(i.line, i.end)
		more := ""
		if detail := cmp.Or(i.detail, i.fallback); detail != "" {
			more += "; " + content.Clip(detail, digest.LineRunes)
		}
		if i.seen > 0 {
			more += " (" + digest.Number(i.seen) + " more like it, the last at line " + digest.Number(i.last) + ")"
		}
		if i.kind == traceback { // the head combines two lines, so it is not a quote
			out = append(out, line+": "+content.Clip(i.head, digest.LineRunes)+more)
		} else {
			out = append(out, s.AddQuote(line, i.line, content.Clip(i.head, digest.LineRunes), more))
		}
	}
	return out
}
