package content

import (
	"bytes"
	"slices"
	"strings"
)

// The beginnings of lines by hand: isLog asks for them at every line of every text, and the
// patterns they stand for take most of the time of reading a small file. Lines hold no line end.

// isCarried is a line that belongs to the entry before, a stack trace's:
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
		if n, ok := bytes.CutPrefix(l, []byte("... ")); ok && countDigits(n) > 0 && bytes.HasPrefix(n[countDigits(n):], []byte(" more")) {
			return true
		}
	}
	if l[len(l)-1] == ')' && isCall(l) {
		return true
	}
	at := bytes.Index(l, []byte("Error: "))
	return at > 0 && !bytes.ContainsAny(l[:at], blanks)
}

// blanks is \s.
const blanks = "\t\n\f\r "

// isCall is a name with a bracket, in a line that ends with one.
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

// inWord is \w.
func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// countDigits is how many l begins with.
func countDigits(l []byte) int {
	n := 0
	for n < len(l) && l[n] >= '0' && l[n] <= '9' {
		n++
	}
	return n
}

// isFound is how grep -n, compilers and linters begin a line: ^[^\s:]+:\d+[:-]
func isFound(l []byte) bool {
	at := bytes.IndexAny(l, blanks+":")
	if at < 1 || l[at] != ':' {
		return false
	}
	after := l[at+1:]
	n := countDigits(after)
	return n > 0 && n < len(after) && (after[n] == ':' || after[n] == '-')
}

// hasLevelField looks for a level among fields: (?:^|[ \t{,])(?:level|lvl|severity)=["']?\w
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
			if before, ok := bytes.CutSuffix(l[:at], []byte(name)); ok && (len(before) == 0 || bytes.IndexByte([]byte(" \t{,"), before[len(before)-1]) >= 0) {
				return true
			}
		}
	}
}

// mayStamp is false where stamped cannot match: a time begins with a digit, the name of a day or a month, a level's
// letter or "time=", perhaps after a bracket, perhaps after the name of a container.
func mayStamp(l []byte) bool {
	if !(bytes.ContainsAny(l[:min(len(l), 56)], "0123456789") && bytes.IndexByte(l[:min(len(l), 80)], ':') > 0 ||
		bytes.IndexByte(l[:min(len(l), 24)], '.') > 0 && bytes.ContainsAny(l[:min(len(l), 2)], "[ 1")) {
		return false // bare Unix seconds are numbers, too
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

// stampEnd is where the time ends with which a line begins, and what stands behind it; -1 where it begins with none.
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

// dateEnd is where stamped ends where its first branch, which most logs write, matches without giving anything back; else 0.
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

// shaped says that l begins with a date and a time as the example is: each digit of it is any, and each sign one of those that stand in its place.
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

// zoneLen is how many bytes l begins with that are a time zone: (?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?
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

// hasLevelWord looks for a level as a word of its own, in capitals or small letters.
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
	if l[0] == ' ' || l[0] == ',' { // before a month, or before the seconds since the start
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

// mayCount is false where no time begins with as many digits, before what follows them. The lines of a page of grep begin with a number.
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

// mayLevel is false where levelled cannot match: by the first three letters of its words.
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
	return l[0] >= 0x80 // ſ folds to s
}
