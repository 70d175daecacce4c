package secrets

import (
	"bytes"
	"encoding/base64"
	"slices"
)

var (
	authoritySet  = classOf("!#-&*-.0-;=?-[]-_a-~") // without /, quotes, backslash and ( ) < >
	bearerSet     = classOf("A-Za-z0-9._~+/=-")
	userSet       = classOf(`A-Za-z0-9._~%!$&*+,;=@\-`)
	credentialSet = classOf("A-Za-z0-9!#$%&()*+,./:<=>?@^_`{|}~[]-")
)

// matchJWT matches a token whose first part decodes to a JSON object that looks like a JOSE header.
func matchJWT(s *scan, h *hit, from int) (finding, bool) {
	if !startsWord(s.b, from) {
		return finding{}, false
	}
	i := from + s.words.of(urlSafe.run, s.b, from, unbounded)
	open := i == len(s.b) && !s.final // the rest has not arrived yet
	if !open && (i == len(s.b) || s.b[i] != '.' || i-from < 12) {
		return finding{}, false
	}
	head := s.b[from:min(i, from+checkedBytes)]
	text, err := base64.RawURLEncoding.DecodeString(string(head[:len(head)/4*4]))
	names := func(key string) bool { return bytes.Contains(text, []byte(key)) }
	if err != nil || !slices.ContainsFunc([]string{`"alg"`, `"typ"`, `"enc"`, `"kid"`}, names) {
		return finding{}, false
	}
	for !open && i < len(s.b) && s.b[i] == '.' {
		i++
		i += urlSafe.run(s.b[i:], unbounded)
	}
	return finding{from: from, to: i, public: 3, format: h.format}, true
}

// maxUser is the longest userinfo of a URL, in bytes.
const maxUser = 512

// matchURL matches the password before the last @ of a URL's authority. It also matches the password of a connection
// string such as USER:PASSWORD@tcp(HOST:PORT), as Go's MySQL driver reads them.
func matchURL(s *scan, h *hit, from int) (finding, bool) {
	if h.keyword[0] == '@' {
		return s.passwordBefore(from)
	}
	at := from + len("://")
	end, last, colon := at, -1, -1
	slashes := at < len(s.b) && s.b[at] == ':' && !isPort(s.b[at+1:]) // without a user or a host, no path can follow
	if slashes {
		if colon = at; at >= s.noAt.from && at < s.noAt.to {
			end = s.noAt.to
		}
	}
	for ; end < len(s.b) && end-at < maxUser && (authoritySet[s.b[end]] || slashes && s.b[end] == '/'); end++ {
		switch c := s.b[end]; {
		case c == '@':
			last = end
		case c == ':' && colon < 0:
			colon = end
		}
	}
	if last < 0 && slashes {
		s.noAt = cachedRun{at, end}
	}
	if last < 0 || colon > last {
		return finding{}, false
	}
	user, password := s.b[at:last], []byte(nil)
	begin := at
	if colon >= 0 {
		user, password, begin = s.b[at:colon], s.b[colon+1:last], colon+1
	}
	if len(password) == 0 || string(password) == "x-oauth-basic" { // here the user name is the secret
		if len(user) < 20 || !secretLike(user, 3) {
			return finding{}, false
		}
		begin, last = at, at+len(user)
		password = user
	}
	if isTemplate(password) || slices.Contains(documented, string(password)) {
		return finding{}, false
	}
	return s.withToken(finding{from: begin, to: last, format: h.format}), true
}

// isPort reports whether b starts with the port of an address.
func isPort(b []byte) bool {
	n := digits.run(b, 6)
	return n > 0 && n < 6 && (n == len(b) || b[n] != '@' && !authoritySet[b[n]])
}

// maxDSN is the longest USER:PASSWORD of a connection string, in bytes.
const maxDSN = 128

// passwordBefore matches the password of USER:PASSWORD that ends at a position.
func (s *scan) passwordBefore(end int) (finding, bool) {
	b := s.b[max(s.doneTo, end-maxDSN):end]
	b = b[len(b)-dsnSet.back(b, maxDSN):]
	colon := bytes.IndexByte(b, ':')
	if colon < 1 || !dsnUser[b[colon-1]] {
		return finding{}, false
	}
	password := b[colon+1:]
	if len(password) == 0 || isTemplate(password) || slices.Contains(documented, string(bytes.ToLower(password))) {
		return finding{}, false
	}
	return finding{from: end - len(password), to: end, format: &urlPassword}, true
}

var (
	dsnSet  = classOf("!#-&(-[]-_a-~")
	dsnUser = classOf("A-Za-z0-9_.%~-")
)

// documented are example passwords from documentation.
var documented = []string{"password", "pass", "passwd", "xxxxx"}

// isTemplate reports whether a password is a shell variable, a template placeholder or a mask.
func isTemplate(p []byte) bool {
	return bytes.IndexByte([]byte("$<{[*"), p[0]) >= 0 || bytes.Contains(p, []byte("${")) ||
		bytes.Contains(p, []byte("{{")) || p[0] == '%' && (len(p) == 2 || p[len(p)-1] == '%')
}

func skipQuotes(b []byte, i int) int {
	for n := 0; i < len(b) && n < 9 && (b[i] == '\\' || b[i] == '"' || b[i] == '\'' || b[i] == '`'); n++ {
		if b[i] == '\\' && !(i+1 < len(b) && (b[i+1] == '\\' || b[i+1] == '"' || b[i+1] == '\'')) {
			break
		}
		i++
	}
	return i
}

// credentials returns the number of bytes from i on that may belong to a header's credentials.
func (s *scan) credentials(i int) int { return s.values.of(credentialSet.value, s.b, i, unbounded) }

// authorizationAt matches the credentials at a position, without their scheme.
func (s *scan) authorizationAt(at int) (finding, bool) {
	n := s.credentials(at)
	if n < 2 {
		return finding{}, false
	}
	// A word followed by a blank is the scheme, such as "Bearer ": skip both.
	if at+n < len(s.b) && s.b[at+n] == ' ' && alnumDash.run(s.b[at:], n) == n && n <= 20 {
		next := at + n + 1
		if k := s.credentials(next); k > 0 {
			at, n = next, k
		}
	}
	v := s.b[at : at+min(n, checkedBytes)]
	if n < 6 || isPlaceholder(v) || v[0] == '$' || v[0] == '{' || v[0] == '[' || bytes.IndexByte(v, '(') >= 0 ||
		!hasDigitOrLong(v) {
		return finding{}, false
	}
	return s.withToken(finding{from: at, to: at + n - unopenedLen(s.b[at:at+n]), format: &authorization}), true
}

// hasDigitOrLong reports whether v has a digit or is long and random, unlike words of prose or source code.
func hasDigitOrLong(v []byte) bool {
	_, _, digit, _ := countKinds(v)
	return digit > 0 || len(v) >= 16 && entropy(v) >= 3.5 && bytes.IndexByte(v, '.') < 0
}

var alnumDash = classOf("A-Za-z0-9-")

// Limits on the part of a header value that is examined.
const (
	maxPairs  = 32      // maximum number of pairs in a cookie header, and of parts of a quoted header's value
	maxCookie = 1 << 10 // maximum number of bytes of a cookie header
)

// cookieAt matches the values of a cookie header at a position, up to the last value that is long and looks random.
func (s *scan) cookieAt(at int) (finding, bool) {
	n := s.cookies.of(cookieSet.value, s.b, at, unbounded)
	line := s.b[at : at+min(n, maxCookie)]
	eq := bytes.IndexByte(line[:min(len(line), maxName)], '=')
	if eq < 0 {
		return finding{}, false
	}
	// All pairs up to the last long value are one secret, because the names of cookies are of little use.
	end := 0
	for i, pairs := eq+1, 0; i <= len(line) && pairs < maxPairs; pairs++ {
		n := bytes.IndexByte(line[i:], ';')
		if n < 0 {
			n = len(line) - i
		}
		v := line[i : i+n]
		if k := bytes.IndexAny(v, " \t"); k >= 0 { // the rest of v is not part of the cookie
			v = v[:k]
		}
		if len(v) >= 16 && secretLike(v, 3) {
			end = i + len(v)
		}
		next := bytes.IndexByte(line[i+n:], '=')
		if next < 0 {
			break
		}
		i += n + next + 1
	}
	if end == 0 {
		return finding{}, false
	}
	if n > maxCookie { // the rest of a longer header is masked without a check
		end = n
	}
	from := at + eq + 1
	return finding{from: from, to: at + end - unopenedLen(s.b[from:at+end]), format: &authorization}, true
}

// cookieSet is the set of bytes allowed in a cookie header.
var cookieSet = classOf(" \t!#-&(-~\x80-\xff")

func matchBearer(s *scan, h *hit, from int) (finding, bool) {
	at := from + len(h.keyword)
	if from > 0 && alnum[s.b[from-1]] {
		return finding{}, false
	}
	n := bearerSet.run(s.b[at:], unbounded)
	v := s.b[at : at+min(n, checkedBytes)]
	if n < 16 || !secretLike(v, 3) || isPlaceholder(v) {
		return finding{}, false
	}
	return s.withToken(finding{from: at, to: at + n, format: h.format}), true
}

func matchBasic(s *scan, h *hit, from int) (finding, bool) {
	at := from + len(h.keyword)
	n := base64Set.run(s.b[at:], 1024)
	if n < 8 || from > 0 && alnum[s.b[from-1]] {
		return finding{}, false
	}
	text := make([]byte, 0, 1024)
	text, err := base64.RawStdEncoding.AppendDecode(text, bytes.TrimRight(s.b[at:at+n], "="))
	if err != nil || bytes.IndexByte(text, ':') < 0 {
		return finding{}, false
	}
	isControl := func(c byte) bool { return c < ' ' || c == 0x7f }
	return finding{from: at, to: at + n, format: h.format}, !slices.ContainsFunc(text, isControl)
}

func matchUser(s *scan, h *hit, from int) (finding, bool) {
	at := skipQuotes(s.b, from+len(h.keyword))
	n := userSet.run(s.b[at:], 128)
	if n == 0 || at+n == len(s.b) || s.b[at+n] != ':' {
		return finding{}, false
	}
	at += n + 1
	n = s.credentials(at)
	v := s.b[at : at+min(n, checkedBytes)]
	if n < 6 || isPlaceholder(v) || v[0] == '$' || v[0] == '[' || !secretLike(v, 2) {
		return finding{}, false
	}
	return finding{from: at, to: at + n - unopenedLen(s.b[at:at+n]), format: h.format}, true
}

// secretLike reports whether v has letters and digits, and at least the given entropy in bits per byte.
func secretLike(v []byte, bits float64) bool {
	v = v[:min(len(v), checkedBytes)]
	lower, upper, digit, _ := countKinds(v)
	return lower+upper > 0 && digit > 0 && entropy(v) >= bits
}

// matchAuthorization matches the value of the header whose name is at from. The value may follow a colon, be a JSON
// member or a list of strings in one, or be the member "value" after a member "name".
func matchAuthorization(s *scan, h *hit, from int) (finding, bool) {
	hd := header{cookie: h.keyword == "cookie", at: afterName}
	at := from + len(h.keyword)
	i := skipQuotes(s.b, at)
	if i > at {
		return s.headerValue(hd, i)
	}
	i += blanks.run(s.b[i:], 8)
	if i == len(s.b) || s.b[i] != ':' && (hd.cookie || s.b[i] != '=') {
		return finding{}, false
	}
	i++
	return s.credential(hd, skipQuotes(s.b, i+blanks.run(s.b[i:], 8)))
}

// headerValue finds the secrets from i on in the value of a header whose name is quoted.
func (s *scan) headerValue(hd header, i int) (finding, bool) {
	var found []finding
	b := s.b
	for n := 0; n < maxPairs; n++ {
		if i += gapLen(b[i:]); i == len(b) {
			s.block.pendingHeader = hd
			break
		}
		c := b[i]
		if hd.at == inList {
			k := skipQuotes(b, i)
			if k == i {
				break
			}
			if f, ok := s.credential(hd, k); ok {
				found, n, k = append(found, f), 0, f.to
			}
			if i = s.elementAfter(k); i < 0 {
				break
			}
			continue
		}
		switch {
		case hd.at == afterName && c == ']': // source code: headers["Cookie"] = …
			i++
		case hd.at == afterName && c == ',':
			i, hd.at = i+1, afterComma
		case hd.at == afterComma:
			k := skipQuotes(b, i)
			if k == i || len(b)-k < len("value") || !bytes.EqualFold(b[k:k+len("value")], []byte("value")) {
				return finding{}, false
			}
			i, hd.at = skipQuotes(b, k+len("value")), afterValue
		case (hd.at == afterName || hd.at == afterValue) && (c == ':' || c == '='):
			i, hd.at = i+1, afterColon
		case hd.at == afterColon && c == '[':
			i, hd.at = i+1, inList
		case hd.at == afterColon:
			return s.credential(hd, skipQuotes(b, i))
		default:
			return finding{}, false
		}
	}
	return together(found)
}

// together returns the first finding with the others after it; ok is false if there is none.
func together(found []finding) (f finding, ok bool) {
	if len(found) == 0 {
		return finding{}, false
	}
	f = found[0]
	f.rest = found[1:]
	return f, true
}

// elementAfter returns the position after the comma that follows the string around i in a list, or −1.
func (s *scan) elementAfter(i int) int {
	i += s.cookies.of(cookieSet.value, s.b, i, unbounded)
	k := skipQuotes(s.b, i)
	if k == i {
		return -1
	}
	if k += gapLen(s.b[k:]); k == len(s.b) || s.b[k] != ',' {
		return -1
	}
	return k + 1
}

// credential matches the header value that starts at i.
func (s *scan) credential(hd header, i int) (f finding, ok bool) {
	if hd.cookie {
		return s.cookieAt(i)
	}
	return s.authorizationAt(i)
}

// maxGap is the maximum number of bytes of white space between two parts of a JSON member.
const maxGap = 256

var space = classOf(" \t\r\n")

// gapLen returns the length of the white space at the start of b, plain or escaped; at most maxGap bytes.
func gapLen(b []byte) int {
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
