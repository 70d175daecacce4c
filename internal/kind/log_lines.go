package kind

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// This file matches line beginnings with handwritten code. isLog tests every line of every text, and the equivalent
// regular expressions would take most of the time of reading a small file. Lines are passed without line endings.

// isCarried reports whether a line continues the previous entry, as the lines of a stack trace do:
//
//	^(?:\s+\S|at |Caused by|Traceback|goroutine \d|[\w./*()-]+\(.*\)$|created by |\S+Error: |\.{3} \d+ more|exit status)
func isCarried(l []byte) bool {
	if len(l) == 0 {
		return false
	}
	switch l[0] {
	case ' ', '\t', '\f', '\r':
		return len(bytes.TrimLeft(l, blanks)) > 0
	case 'a':
		if bytes.HasPrefix(l, []byte("at ")) {
			return true
		}
	case 'C':
		if bytes.HasPrefix(l, []byte("Caused by")) {
			return true
		}
	case 'T':
		if bytes.HasPrefix(l, []byte("Traceback")) {
			return true
		}
	case 'c':
		if bytes.HasPrefix(l, []byte("created by ")) {
			return true
		}
	case 'e':
		if bytes.HasPrefix(l, []byte("exit status")) {
			return true
		}
	case 'g':
		if n, ok := bytes.CutPrefix(l, []byte("goroutine ")); ok && countDigits(n) > 0 {
			return true
		}
	case '.':
		if n, ok := bytes.CutPrefix(l, []byte("... ")); ok && countDigits(n) > 0 &&
			bytes.HasPrefix(n[countDigits(n):], []byte(" more")) {
			return true
		}
	}
	if l[len(l)-1] == ')' && isCall(l) {
		return true
	}
	at := bytes.Index(l, []byte("Error: "))
	return at > 0 && !bytes.ContainsAny(l[:at], blanks)
}

// blanks are the characters that \s matches.
const blanks = "\t\n\f\r "

// isCall reports whether a line that ends with ")" begins with a name and "(".
func isCall(l []byte) bool {
	for i, c := range l[:len(l)-1] {
		switch {
		case c == '(' && i > 0:
			return true
		case !inWord(c) && bytes.IndexByte([]byte("./*()-"), c) < 0:
			return false
		}
	}
	return false
}

// inWord reports whether \w matches c.
func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// countDigits returns the number of leading digits of l.
func countDigits(l []byte) int {
	n := 0
	for n < len(l) && l[n] >= '0' && l[n] <= '9' {
		n++
	}
	return n
}

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

// hasLevelField reports whether a line has a level field: (?:^|[ \t{,])(?:level|lvl|severity)=["']?\w
func hasLevelField(l []byte) bool {
	for at := 0; ; at++ {
		next := bytes.IndexByte(l[at:], '=')
		if next < 0 {
			return false
		}
		at += next
		value := l[at+1:]
		if len(value) > 0 && (value[0] == '"' || value[0] == '\'') {
			value = value[1:]
		}
		if len(value) == 0 || !inWord(value[0]) {
			continue
		}
		for _, name := range []string{"level", "lvl", "severity"} {
			if before, ok := bytes.CutSuffix(l[:at], []byte(name)); ok &&
				(len(before) == 0 || bytes.IndexByte([]byte(" \t{,"), before[len(before)-1]) >= 0) {
				return true
			}
		}
	}
}

// mayStamp is a cheap pre-filter for stamped: it returns false only if stamped cannot match. A time begins with a
// digit, the name of a day or month, a level letter or "time=", optionally after a bracket and after a container
// name.
func mayStamp(l []byte) bool {
	if !(bytes.ContainsAny(l[:min(len(l), 56)], "0123456789") && bytes.IndexByte(l[:min(len(l), 80)], ':') > 0 ||
		bytes.IndexByte(l[:min(len(l), 24)], '.') > 0 && bytes.ContainsAny(l[:min(len(l), 2)], "[ 1")) {
		return false // allow Unix seconds without a colon
	}
	if mayBeTime(l) {
		return true
	}
	n := 0
	for n < min(len(l), 40) && (inWord(l[n]) || l[n] == '.' || l[n] == '-') {
		n++
	}
	rest := bytes.TrimLeft(l[n:], " ")
	return n > 0 && len(rest) > 1 && rest[0] == '|' && rest[1] == ' ' && mayBeTime(rest[2:])
}

var (
	// stamped matches a line that begins with a time in a log format: ISO 8601 and its variants, syslog, Go, klog,
	// dmesg, Unix seconds, or a time of day; optionally in brackets, optionally after a container name. The time
	// must not be followed by a comma or semicolon, which delimit CSV.
	stamped = content.Pattern(`^(?:[\w.-]{1,40} +\| )?[\[(<]?(?:` +
		`(?:time=|ts=)?"?\d{4}[-/.]\d\d[-/.]\d\d(?:[T _]|:)\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?` +
		`|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)?,? ?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2}(?: \d{4})?,? \d\d:\d\d:\d\d(?:\.\d+)?(?: \d{4})?` +
		`|\d{1,2}[/ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[/ -]\d{4}[: ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: [+-]\d{4})?` +
		`|\d\d[-/]\d\d(?:[-/]\d{2,4})? \d\d:\d\d:\d\d(?:[.,]\d+)?` +
		`|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+` +
		`| *\d{1,10}\.\d{6}` +
		`|1\d{9}(?:\.\d{1,9}|\d{3})?` +
		`|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?` +
		`)(?:[\]>)"]?(?:[ \t|:]|$|\]))`)
	// request matches a line of a web server's access log: an address, then a time in brackets.
	request = content.Pattern(`^[\w.:-]+ \S+ \S+ \[\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d`)
	// levelled matches a line that begins with a level.
	levelled = content.Pattern(`^[\[(<]?(?i:trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|panic|severe|fine|emerg|alert)[\])>]?(?::|\b[ \t|\]-]|$)` +
		`|^<\d{1,3}>|^[VDIWEF]/[\w.-]+ *(?:\(|:)`)
)

// stampEnd returns the end of the time at the start of a line, including the character that follows the time; −1 if
// there is no time.
func stampEnd(l []byte) int {
	if !mayStamp(l) {
		return -1
	}
	if end := dateEnd(l); end > 0 {
		return end
	}
	if at := stamped().FindIndex(l); at != nil {
		return at[1]
	}
	return -1
}

// dateEnd matches the first alternative of stamped, the most common log format, without backtracking. It returns
// the end of the match, or 0 if the caller must use stamped.
func dateEnd(l []byte) int {
	at := len(l) - len(cutBracket(l))
	for _, name := range []string{"time=", "ts="} {
		if bytes.HasPrefix(l[at:], []byte(name)) {
			at += len(name)
			break
		}
	}
	if at < len(l) && l[at] == '"' {
		at++
	}
	if !shaped(l[at:], "0000-00-00T00:00") {
		return 0
	}
	at += len("0000-00-00T00:00")
	if shaped(l[at:], ":00") {
		at += 3
	}
	if at+1 < len(l) && (l[at] == '.' || l[at] == ',') {
		if n := countDigits(l[at+1:]); n > 0 {
			at += 1 + min(n, 9)
		}
	}
	at += zoneLen(l[at:])
	if at < len(l) && bytes.IndexByte([]byte(`]>)"`), l[at]) >= 0 {
		at++
	}
	switch {
	case at == len(l):
		return at
	case bytes.IndexByte([]byte(" \t|:]"), l[at]) >= 0:
		return at + 1
	}
	return 0
}

// shaped reports whether l begins with a date and time of the form of the example: "0" matches any digit, "-"
// matches - / or ., "T" matches T, space, _ or :, and ":" matches itself.
func shaped(l []byte, example string) bool {
	if len(l) < len(example) {
		return false
	}
	for i, c := range []byte(example) {
		of := ""
		switch c {
		case '0':
			if l[i] < '0' || l[i] > '9' {
				return false
			}
			continue
		case '-':
			of = "-/."
		case 'T':
			of = "T _:"
		case ':':
			of = ":"
		}
		if strings.IndexByte(of, l[i]) < 0 {
			return false
		}
	}
	return true
}

// zoneLen returns the length of the time zone at the start of l: (?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?
func zoneLen(l []byte) int {
	n := 0
	if len(l) > 0 && l[0] == ' ' {
		n = 1
	}
	switch z := l[n:]; {
	case len(z) > 0 && z[0] == 'Z':
		return n + 1
	case bytes.HasPrefix(z, []byte("UTC")):
		return n + 3
	case len(z) >= 5 && (z[0] == '+' || z[0] == '-') && countDigits(z[1:3]) == 2:
		if countDigits(z[3:5]) == 2 {
			return n + 5
		}
		if len(z) >= 6 && z[3] == ':' && countDigits(z[4:6]) == 2 {
			return n + 6
		}
	}
	return 0
}

// hasLevelWord reports whether l contains a level as a whole word, all upper or all lower case.
func hasLevelWord(l []byte) bool {
	for at := 0; at < len(l); at++ {
		from := at
		for at < len(l) && inWord(l[at]) {
			at++
		}
		switch string(l[from:at]) {
		case "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "ERR", "CRITICAL", "CRIT", "FATAL", "PANIC", "SEVERE",
			"trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal", "panic":
			return true
		}
	}
	return false
}

var days, months = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"},
	[]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

func mayBeTime(l []byte) bool {
	l = cutBracket(l)
	if len(l) < 8 { // 0.000000 and 12:00:00 are the shortest
		return false
	}
	if l[0] == ' ' || l[0] == ',' { // precedes a month, or the seconds since boot
		if l = bytes.TrimLeft(l, " ,"); len(l) < 3 {
			return false
		}
	}
	switch c := l[0]; {
	case c >= '0' && c <= '9':
		return mayCount(l)
	case c == '"':
		return true
	case c == 't':
		return l[1] == 'i' || l[1] == 's'
	case bytes.IndexByte([]byte("IWEF"), c) >= 0 && l[1] >= '0' && l[1] <= '9':
		return true
	}
	return slices.Contains(days, string(l[:3])) || slices.Contains(months, string(l[:3]))
}

// mayCount returns false if no time format begins with this number of digits followed by this character. It rejects
// the numbered lines of a grep page.
func mayCount(l []byte) bool {
	n := countDigits(l)
	switch {
	case n >= 10 && l[0] == '1':
		return true
	case n == len(l):
		return false
	}
	of := "."
	switch n {
	case 1:
		of = "./ -"
	case 2:
		of = "./ -:"
	case 4:
		of = ".-/"
	}
	return strings.IndexByte(of, l[n]) >= 0
}

func cutBracket(l []byte) []byte {
	if len(l) > 0 && (l[0] == '[' || l[0] == '(' || l[0] == '<') {
		return l[1:]
	}
	return l
}

// mayLevel is a cheap pre-filter for levelled: it compares the first three letters and returns false only if
// levelled cannot match.
func mayLevel(l []byte) bool {
	switch {
	case len(l) < 3, l[0] >= 0x80:
		return false
	case l[0] == '<' && l[1] >= '0' && l[1] <= '9', l[1] == '/' && bytes.IndexByte([]byte("VDIWEF"), l[0]) >= 0:
		return true
	}
	if l = cutBracket(l); len(l) < 3 {
		return false
	}
	switch string([]byte{l[0] | 0x20, l[1] | 0x20, l[2] | 0x20}) {
	case "tra", "deb", "inf", "not", "war", "err", "cri", "fat", "pan", "sev", "fin", "eme", "ale":
		return true
	}
	return l[0] >= 0x80 // ſ (U+017F) folds to s
}
