package secrets

import "bytes"

// stage is how far a header's value is off: what of `"name": "Cookie", "value": ["sid=…"` stood already. Where a text ends there, the
// value begins the next one, as where JSON is read line by line.
type stage byte

const (
	noHeader stage = iota
	afterName
	afterComma // between a name and its value
	afterValue // the word, as a member's name
	afterColon
	inList // before an element
)

// header is a header whose value is yet to come.
type header struct {
	cookie bool
	at     stage
}

// matchAuthorization takes what a header's name around from is given: behind a colon, as a member of JSON, as the elements of
// one, or as the value of a pair of name and value.
func matchAuthorization(s *scan, h *hit, from int) (found, bool) {
	hd := header{cookie: h.keyword == "cookie", at: afterName}
	at := from + len(h.keyword)
	i := skipQuotes(s.b, at)
	if i > at {
		return s.headerValue(hd, i)
	}
	i += blanks.run(s.b[i:], 8)
	if i == len(s.b) || s.b[i] != ':' && (hd.cookie || s.b[i] != '=') {
		return found{}, false
	}
	i++
	hd.at = noHeader
	return s.credential(hd, skipQuotes(s.b, i+blanks.run(s.b[i:], 8)))
}

// headerValue goes on from i to the first secret in the value of a header whose name is quoted.
func (s *scan) headerValue(hd header, i int) (found, bool) {
	b := s.b
	for n := 0; n < maxPairs; n++ {
		if i += gap(b[i:]); i == len(b) {
			s.block.until = hd
			return found{}, false
		}
		switch c := b[i]; {
		case hd.at == afterName && c == ']': // of a program's index
			i++
		case hd.at == afterName && c == ',':
			i, hd.at = i+1, afterComma
		case hd.at == afterComma:
			k := skipQuotes(b, i)
			if k == i || len(b)-k < len("value") || !bytes.EqualFold(b[k:k+len("value")], []byte("value")) {
				return found{}, false
			}
			i, hd.at = skipQuotes(b, k+len("value")), afterValue
		case (hd.at == afterName || hd.at == afterValue) && (c == ':' || c == '='):
			i, hd.at = i+1, afterColon
		case hd.at == afterColon && c == '[':
			i, hd.at = i+1, inList
		case hd.at == afterColon:
			hd.at = noHeader
			return s.credential(hd, skipQuotes(b, i))
		case hd.at == inList:
			k := skipQuotes(b, i)
			if k == i {
				return found{}, false
			}
			if f, ok := s.credential(hd, k); ok {
				return f, true
			}
			if i = s.element(k); i < 0 {
				return found{}, false
			}
		default:
			return found{}, false
		}
	}
	return found{}, false
}

// element is behind the comma that follows the string around i in a list; −1 for none.
func (s *scan) element(i int) int {
	i += s.cookies.value(cookieSet, s.b, i, unbounded)
	k := skipQuotes(s.b, i)
	if k == i {
		return -1
	}
	if k += gap(s.b[k:]); k == len(s.b) || s.b[k] != ',' {
		return -1
	}
	return k + 1
}

// more finds the secret in the next elements of a list behind f.
func (s *scan) more(f found) (found, bool) {
	if f.list.at != inList {
		return found{}, false
	}
	if i := s.element(f.to); i >= 0 {
		return s.headerValue(f.list, i)
	}
	return found{}, false
}

// credential takes the value at i of a header.
func (s *scan) credential(hd header, i int) (f found, ok bool) {
	if hd.cookie {
		f, ok = s.cookieAt(i)
	} else {
		f, ok = s.authorizationAt(i)
	}
	f.list = hd
	return f, ok
}

// maxGap is how many bytes may stand between two parts of a member.
const maxGap = 256

var space = classOf(" \t\r\n")

// gap is how many bytes at the beginning of b are blanks and line ends, these also as escapes.
func gap(b []byte) int {
	b = b[:min(len(b), maxGap)]
	for i := 0; ; {
		i += space.run(b[i:], maxGap)
		n := slash.run(b[i:], maxSlashes)
		if n == 0 || i+n == len(b) || bytes.IndexByte([]byte("nrt"), b[i+n]) < 0 {
			return i
		}
		i += n + 1
	}
}
