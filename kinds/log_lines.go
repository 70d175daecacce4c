package kinds

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// This file matches the beginnings of lines, passed without line endings. isLog tests up to 200 lines of every text,
// so a cheap test, which most lines fail, comes before each regular expression.

// isCarried reports whether a line continues the previous entry, as the lines of a stack trace do:
//
//	^(?:\s+\S|at |Caused by|Traceback|goroutine \d|[\w./*()-]+\(.*\)$|created by |\S+Error: |\.{3} \d+ more|exit status)
//
// The code is handwritten because nearly every line of prose would reach the regular expression.
func isCarried(l []byte) bool {
	if rest := bytes.TrimLeft(l, blanks); len(rest) < len(l) || len(l) == 0 {
		return len(rest) > 0
	}
	starts := []string{"at ", "Caused by", "Traceback", "created by ", "exit status"}
	if slices.ContainsFunc(starts, func(s string) bool { return bytes.HasPrefix(l, []byte(s)) }) {
		return true
	}
	if n, ok := bytes.CutPrefix(l, []byte("goroutine ")); ok && countDigits(n) > 0 {
		return true
	}
	if n, ok := bytes.CutPrefix(l, []byte("... ")); ok && countDigits(n) > 0 &&
		bytes.HasPrefix(n[countDigits(n):], []byte(" more")) {
		return true
	}
	if i := bytes.IndexByte(l[1:], '('); i >= 0 && l[len(l)-1] == ')' && !slices.ContainsFunc(l[:i+1], endsCall) {
		return true
	}
	at := bytes.Index(l, []byte("Error: "))
	return at > 0 && !bytes.ContainsAny(l[:at], blanks)
}

// blanks are the characters that \s matches.
const blanks = "\t\n\f\r "

// inWord reports whether \w matches c.
func inWord(c byte) bool { return c < utf8.RuneSelf && digest.IsWord[c] }

// endsCall reports whether c cannot be part of the name of a called function, such as "a/b.(*T).f".
func endsCall(c byte) bool { return !inWord(c) && bytes.IndexByte([]byte("./*()-"), c) < 0 }

// countDigits returns the number of leading digits of l.
func countDigits(l []byte) int { return len(l) - len(bytes.TrimLeft(l, "0123456789")) }

// isFound reports whether a line begins like output of grep -n, compilers or linters: ^[^\s:]+:\d+[:-]
func isFound(l []byte) bool {
	at := bytes.IndexAny(l, blanks+":")
	if at < 1 || l[at] != ':' {
		return false
	}
	after := l[at+1:]
	n := countDigits(after)
	return n > 0 && n < len(after) && (after[n] == ':' || after[n] == '-')
}

// Parts of stamped: AM or PM, times of day, months.
const (
	half   = `(?:[ \x{a0}\x{202f}]?[AaPp]\.?[Mm]\.?)`
	clocks = `\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?` + half + `?|` + half + `)`
	months = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)`
)

var (
	// stamped matches a line that begins with a time in a log format: ISO 8601 and its variants, syslog, Go, klog,
	// dmesg, Unix seconds, or a time of day, perhaps with AM or PM; optionally in brackets. The time
	// must not be followed by a comma or semicolon, which delimit CSV.
	stamped = content.Pattern(`^[\[(<]?(?:` +
		`(?:time=|ts=)?"?\d{4}[-/.]\d\d[-/.]\d\d(?:[T _]|:)\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?` +
		half + `?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?` +
		`|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6})?,? ?` + months + ` {1,2}\d{1,2}(?:,? \d{4})?,? ` +
		clocks + `(?: (?:UTC|[A-Z]{2,3}T))?(?: \d{4})?` +
		`|\d{1,2}[/ -]` + months + `[/ -]\d{4}[: ]` + clocks + `(?: [+-]\d{4})?` +
		`| ?\d{1,2}[-/]\d{1,2}(?:[-/]\d{2,4})?,? {1,2}` + clocks +
		`|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+` +
		`| *\d{1,10}\.\d{6}` +
		`|1\d{9}(?:\.\d{1,9}|\d{3})?` +
		`|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?` + half + `?` +
		`|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?` + half +
		`)(?:[\]>)"]?(?:[ \t|:]|$|\]))`)
	// levelField matches a level field anywhere in a line.
	levelField = content.Pattern(`(?:^|[ \t{,])(?:level|lvl|severity)=["']?\w`)
	// request matches a line of a web server's access log: an address, then a time in brackets.
	request = content.Pattern(`^[\w.:-]+ \S+ \S+ \[\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d`)
	// levelled matches a line that begins with a level.
	levelled = content.Pattern(`^[\[(<]?(?i:trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|panic|severe|fine|emerg|alert)[\])>]?(?::|\b[ \t|\]-]|$)` +
		`|^<\d{1,3}>|^[VDIWEFA]/(?:[\w.-]+ *[(:]|[^:(]{1,80}\( *\d+\))`)
)

// stampEnd returns the end of the time at the start of a line, including the character that follows the time; −1 if
// there is no time.
func stampEnd(l []byte) int {
	if mayStamp(l) {
		if at := stamped().FindIndex(l); at != nil {
			return at[1]
		}
	}
	return -1
}

// mayStamp reports whether a line has a digit and a colon near its start, or a point for Unix seconds, and begins like
// a time.
func mayStamp(l []byte) bool {
	if !(bytes.ContainsAny(l[:min(len(l), 56)], "0123456789") && bytes.IndexByte(l[:min(len(l), 80)], ':') > 0 ||
		bytes.IndexByte(l[:min(len(l), 24)], '.') > 0 && bytes.ContainsAny(l[:min(len(l), 2)], "[ 1")) {
		return false
	}
	return bytes.IndexByte([]byte(` ,"[(<0123456789`), l[0]) >= 0 ||
		strings.Contains("ti ts Mo Tu We Th Fr Sa Su Ja Fe Ma Ap Ju Au Se Oc No De", string(l[:2])) ||
		bytes.IndexByte([]byte("IWEF"), l[0]) >= 0 && countDigits(l[1:]) > 0
}

// levelStarts are the first bytes of lines that [levelled] matches.
const levelStarts = "[(<VtdinwecfpsaTDINWECFPSA"

// hasLevel reports whether a line begins with a level or has a level field.
func hasLevel(l []byte) bool {
	for _, name := range []string{"level=", "lvl=", "severity="} {
		if bytes.Contains(l, []byte(name)) && levelField().Match(l) {
			return true
		}
	}
	return len(l) > 0 && strings.IndexByte(levelStarts, l[0]) >= 0 && levelled().Match(l)
}

// levelWords are the levels that hasLevelWord finds.
var levelWords = strings.Fields("TRACE DEBUG INFO NOTICE WARN WARNING ERROR ERR CRITICAL CRIT FATAL PANIC SEVERE " +
	"trace debug info notice warn warning error critical fatal panic")

// hasLevelWord reports whether l contains a level as a whole word, all upper or all lower case.
func hasLevelWord(l []byte) bool {
	outside := func(r rune) bool { return r >= utf8.RuneSelf || !digest.IsWord[r] }
	return slices.ContainsFunc(bytes.FieldsFunc(l, outside), func(w []byte) bool {
		return slices.Contains(levelWords, string(w))
	})
}
