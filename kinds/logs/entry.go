package logs

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// entry is what the beginning of a line says.
type entry struct {
	form         form
	level        level // stated by the beginning of glog, android, priority and syslog; else noLevel
	from, to     int   // line[from:to] is the time; to is 0 if there is none
	rest         int   // offset of what follows the time, or the service if there is no time
	service, tag span  // the service that the line is from; the tag of android
}

type span struct{ from, to int }

// form is a format whose lines are read in a way of their own.
type form uint8

const (
	plain    form = iota
	access        // 1.2.3.4 - - [20/Nov/2026:14:30:22 +0000] "GET / HTTP/1.1" 200 12
	glog          // I1120 14:30:22.123456 1 main.go:12] text
	android       // 11-20 14:30:22.123  1234  5678 I Tag: text, or another format of logcat
	priority      // <34>Nov 20 14:30:22 host app: text; its digits are the level
	syslog        // <131>1 2026-11-20T14:30:22Z host app …, likewise
)

// severities are the levels of the priorities of syslog modulo 8.
var severities = [8]level{fatal, fatal, fatal, failure, warn, notice, info, debug}

// letters are the levels of glog and of Android.
var letters = [256]level{
	'V': trace, 'D': debug, 'I': info, 'W': warn, 'E': failure, 'F': fatal, 'A': fatal,
}

// parse reads the beginning of a line, which is passed without terminal escape sequences. services reports whether the
// line may begin with the name of a service.
func (e *entry) parse(line []byte, services bool) {
	*e = entry{}
	if e.stamp(line, 0); e.to == 0 { // most lines begin with their time
		at := 0
		if services {
			e.service, at = serviceOf(line)
		}
		if end := priorityEnd(line[at:]); end > 0 {
			n, _ := strconv.Atoi(string(line[at+1 : at+end-1]))
			e.form, e.level = priority, severities[n%8]
			if at += end; at+1 < len(line) && line[at]-'1' < 9 && line[at+1] == ' ' {
				e.form = syslog
				at += 2 // the version
			}
		}
		if at > 0 {
			e.stamp(line, at)
		}
		if e.to == 0 {
			if from, to := midStamp(line[at:]); to > 0 {
				e.form, e.from, e.to = access, at+from, at+to
				return
			}
		}
	}
	switch {
	case e.byDigits():
	case e.to > e.rest:
		e.form, e.level = glog, letters[line[e.rest]]
	case mayBeLogcat(line[e.rest:], e.to > 0):
		if lv, tag := logcat(line[e.rest:], e.to > 0); lv != noLevel {
			e.form, e.level, e.tag = android, lv, span{e.rest + tag.from, e.rest + tag.to}
		}
	}
}

// byDigits reports whether a line that differs only in digits may have another level.
func (e *entry) byDigits() bool { return e.form == priority || e.form == syslog }

// stamp sets the time at line[at] and the rest.
func (e *entry) stamp(line []byte, at int) {
	from, to, rest := stamp(line[at:])
	if e.rest = at + rest; to > 0 {
		e.from, e.to = at+from, at+to
	}
}

// priorityEnd returns the end of the priority of syslog at the beginning of b, such as "<131>"; 0 if there is none.
func priorityEnd(b []byte) int {
	if len(b) < 3 || b[0] != '<' {
		return 0
	}
	if end := digitsEnd(b, 1); end > 1 && end <= 4 && end < len(b) && b[end] == '>' {
		return end + 1
	}
	return 0
}

// serviceOf finds the name of a service before a line, and where the line itself begins: "web-1  | " of docker compose,
// "[pod/web-0/app] " of kubectl, and "web-0 app " of stern if a time follows. end is 0 if there is none.
func serviceOf(b []byte) (name span, end int) {
	const longest = 255
	if bytes.HasPrefix(b, []byte("[pod/")) {
		n := nameEnd(b, len("[pod/"), longest)
		if n+1 < len(b) && b[n] == ']' && b[n+1] == ' ' {
			return span{len("[pod/"), n}, n + 2
		}
		return name, 0
	}
	n := nameEnd(b, 0, longest)
	at := n
	for at < len(b) && b[at] == ' ' {
		at++
	}
	if n == 0 || at == n || at == len(b) {
		return name, 0
	}
	if b[at] == '|' && (at+1 == len(b) || b[at+1] == ' ') {
		if n <= levelLong {
			if l, _ := levelNamed(b[:n]); l != noLevel {
				return name, 0
			}
		}
		return span{0, n}, min(at+2, len(b))
	}
	if at > n+1 || bytes.IndexByte(b[:n], '-') < 1 {
		return name, 0
	}
	if to := nameEnd(b, at, longest); to > at && to+1 < len(b) && b[to] == ' ' {
		if _, stamped, _ := stamp(b[to+1:]); stamped > 0 {
			return span{0, to}, to + 1
		}
	}
	return name, 0
}

// nameEnd returns the end of the name of a container that begins at b[i], at most longest bytes after it.
func nameEnd(b []byte, i, longest int) int {
	for end := min(len(b), i+longest); i < end && inName[b[i]]; i++ {
	}
	return i
}

// inName is true for the characters of names of containers.
var inName = func() (t [256]bool) {
	for c := range 128 {
		t[c] = digest.IsWord[c] || strings.IndexByte("-.@/", byte(c)) >= 0
	}
	return t
}()

// SkipService returns a line without the name of a service before it.
func SkipService(line []byte) []byte {
	_, at := serviceOf(line)
	return line[at:]
}

// mayBeLogcat reports whether a line begins like one of logcat. Most lines do not.
func mayBeLogcat(b []byte, stamped bool) bool {
	return len(b) > 3 && (b[1] == '/' || stamped && b[0]-'0' <= 9)
}

// logcat returns the level of a line of Android's logcat, which is passed without its time, and where its tag is;
// noLevel if it is another line. The formats are threadtime ("1234  5678 E Tag: text", a user's number may come before
// it), long ("1234: 5678 E/Tag ]"), brief and time ("E/Tag( 1234): text"), and tag ("E/Tag: text").
func logcat(b []byte, stamped bool) (level, span) {
	at := 0
	for numbers := 0; stamped && b[0]-'0' <= 9 && numbers < 4; numbers++ {
		end := digitsEnd(b, at)
		if end == at && numbers >= 2 {
			break
		}
		next := end
		for next < len(b) && (b[next] == ' ' || b[next] == ':') {
			next++
		}
		if end == at || next == end {
			return noLevel, span{}
		}
		at = next
	}
	if at+3 >= len(b) || letters[b[at]] == noLevel || b[at+1] != '/' && (b[at+1] != ' ' || at == 0) {
		return noLevel, span{}
	}
	tag := b[at+2 : min(len(b), at+levelWithin)]
	end, slash := 0, b[at+1] == '/'
	for end < len(tag) && tag[end] != ':' && !(slash && (tag[end] == '(' || tag[end] == ']')) {
		end++
	}
	name := bytes.TrimRight(tag[:end], " ")
	switch {
	case end == len(tag) || len(name) == 0:
		return noLevel, span{}
	case at > 0:
	case tag[end] == ':': // "I/O: text" is none
		if len(name) < 2 || bytes.IndexByte(name, ' ') >= 0 {
			return noLevel, span{}
		}
	default:
		number := bytes.TrimLeft(tag[end+1:], " ")
		if n := digitsEnd(number, 0); n == 0 || n == len(number) || number[n] != ')' {
			return noLevel, span{}
		}
	}
	return letters[b[at]], span{at + 2, at + 2 + len(name)}
}
