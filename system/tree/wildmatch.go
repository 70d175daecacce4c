package tree

import "strings"

// wildmatch reports whether text matches an ignore pattern as git reads one:
//
//	?        one byte other than "/"
//	*        any bytes other than "/"
//	[…]      one byte of a class, but not "/"; [!…] and [^…] one byte not in it
//	\x       x
//	**/      at the start of the pattern or after "/": nothing, or anything up to a "/"
//	**       the same at the end of the pattern: anything
//
// A "**" elsewhere is a "*". Patterns match bytes: git knows no encodings here. Where git backtracks over every start,
// it suffices here to retry the latest "*" and the latest "**/": a "*" ends before the next "/", so the earliest match
// of the text between two "**/" leaves most to the rest. The time is at most quadratic in the length of a name times
// the number of directories, whatever the pattern.
func wildmatch(p, text string) bool {
	const none = -1
	pi, ti := 0, 0
	starP, starT := none, 0 // the "*" restarts at starP with text from starT, after it has taken one more byte
	// the "**/" restarts at deepP with text from deepT, after it has taken the text up to the next "/"
	deepP, deepT := none, 0
	for {
		ok := false
		switch {
		case pi == len(p):
			if ti == len(text) {
				return true
			}
		case p[pi] == '*':
			at := pi
			for pi < len(p) && p[pi] == '*' {
				pi++
			}
			deep := pi-at > 1 && (at == 0 || p[at-1] == '/')
			switch {
			case deep && pi == len(p):
				return true
			case deep && p[pi] == '/':
				pi++
				deepP, deepT, starP = pi, ti, none
				continue
			case deep && strings.HasPrefix(p[pi:], `\/`):
				// "**" does not cover an escaped "/": it must be in the text.
				pi += 2
				deepP, deepT, starP = pi, ti, none // as if nothing matched before the next "/"
			default:
				starP, starT = pi, ti
				continue
			}
		case ti == len(text):
			return false // every other start leaves even less text
		case p[pi] == '?':
			if ok = text[ti] != '/'; ok {
				pi, ti = pi+1, ti+1
			}
		case p[pi] == '[':
			in, next := matchClass(p, pi+1, text[ti])
			if ok = in && text[ti] != '/'; ok {
				pi, ti = next, ti+1
			}
		default:
			width := 1
			if p[pi] == '\\' && pi+1 < len(p) {
				width = 2
			}
			if ok = p[pi+width-1] == text[ti]; ok {
				pi, ti = pi+width, ti+1
			}
		}
		if ok {
			continue
		}
		if starP != none && starT < len(text) && text[starT] != '/' {
			starT++
			pi, ti = starP, starT
			continue
		}
		if deepP == none {
			return false
		}
		slash := strings.IndexByte(text[deepT:], '/')
		if slash < 0 {
			return false
		}
		deepT += slash + 1
		pi, ti, starP = deepP, deepT, none
	}
}

// matchClass parses the class that begins at p[i], after "[", and reports whether c is in it and where the pattern
// continues. next < 0 means that the class is invalid and the pattern matches nothing.
func matchClass(p string, i int, c byte) (in bool, next int) {
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	// from is the start of a possible range; 0 at the start, after a range and after a named class.
	var from byte
	for first := true; ; first = false {
		if i >= len(p) {
			return false, -1
		}
		switch {
		case p[i] == ']' && !first:
			return in != negated, i + 1
		case p[i] == '\\':
			if i++; i >= len(p) {
				return false, -1
			}
			in = in || c == p[i]
			from = p[i]
		case p[i] == '-' && from != 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			if p[i] == '\\' {
				if i++; i >= len(p) {
					return false, -1
				}
			}
			in = in || from <= c && c <= p[i]
			from = 0
		case p[i] == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return false, -1
			}
			name := p[i+2 : i+2+end]
			if !strings.HasSuffix(name, ":") {
				in = in || c == '[' // not a named class: a plain "[", then ":" and so on
				from = '['
				break
			}
			member, known := inPosixClass(name[:len(name)-1], c)
			if !known {
				return false, -1
			}
			in = in || member
			from = 0
			i += 2 + end
		default:
			in = in || c == p[i]
			from = p[i]
		}
		i++
	}
}

// posixClasses are the POSIX classes as git defines them, each as pairs of a first and a last byte: ASCII only, and
// space is blank, tab, newline or carriage return.
var posixClasses = map[string]string{
	"alnum": "azAZ09", "alpha": "azAZ", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\n\r\r", "upper": "AZ", "xdigit": "09afAF",
}

// inPosixClass reports whether c is in a POSIX class.
func inPosixClass(name string, c byte) (member, known bool) {
	ranges, known := posixClasses[name]
	for ; ranges != "" && !member; ranges = ranges[2:] {
		member = ranges[0] <= c && c <= ranges[1]
	}
	return member, known
}

// neverMatches reports whether a pattern can match nothing: a class without end or with an unknown name, or a "\" at
// the end.
func neverMatches(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			if i++; i == len(p) {
				return true
			}
		case '[':
			_, next := matchClass(p, i+1, 'x')
			if next < 0 {
				return true
			}
			i = next - 1
		}
	}
	return false
}
