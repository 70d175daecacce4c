package secrets

import (
	"bytes"
	"encoding/base64"
	"slices"
)

var (
	jwt = Format{Name: "jwt", Of: "JSON web token", Source: "RFC 7519", Keywords: "eyJ", Shape: "three parts of base64url with dots between them, the first an object that names its algorithm",
		shape: read("[h-z0-6]", "")}
	urlPassword = Format{Name: "url-password", Of: "password in a URL or a connection string", Source: "RFC 3986, 3.2.1", Keywords: "://", Shape: "USER:PASSWORD@ behind it",
		Check: "no variable of a shell or a template", shape: read("[A-Za-z0-9%$_~*-]", "")}
	authorization = Format{Name: "authorization", Of: "credentials of an Authorization or Cookie header", Source: "RFC 9110, 11.6; RFC 6265", Keywords: "authorization|cookie", fold: true,
		Shape: "a scheme, which stays, and what follows it; in JSON also a list of them, and a `value` behind a `name`"}
	bearer   = Format{Name: "bearer-token", Of: "bearer token", Source: "RFC 6750", Keywords: "bearer ", fold: true, Shape: "16 or more of [A-Za-z0-9._~+/=-]", Check: "letters and digits, entropy of 3 bits"}
	basic    = Format{Name: "basic-auth", Of: "Basic credentials", Source: "RFC 7617", Keywords: "basic ", fold: true, Shape: "base64 of USER:PASSWORD", Check: "it decodes to text with a colon"}
	userFlag = Format{Name: "user-flag", Of: "curl's -u USER:PASSWORD", Source: "curl.se/docs/manpage.html", Keywords: " -u |--user |--user=|--proxy-user ", Shape: "USER:PASSWORD", Check: "as of an assigned password"}
)

var (
	bearerSet     = classOf("A-Za-z0-9._~+/=-")
	userSet       = classOf(`A-Za-z0-9._~%!$&*+,;=@\-`)
	credentialSet = classOf("A-Za-z0-9!#$%&()*+,./:<=>?@^_`{|}~[]-")
)

// matchJWT takes a token whose first part decodes to an object, and so its second.
func matchJWT(s *scan, h *hit, from int) (found, bool) {
	if !startsWord(s.b, from) {
		return found{}, false
	}
	i := from + s.words.run(urlSafe, s.b, from, unbounded)
	open := i == len(s.b) && !s.final // what follows is not here yet
	if !open && (i == len(s.b) || s.b[i] != '.' || i-from < 12) {
		return found{}, false
	}
	head := s.b[from:min(i, from+checked)]
	text, err := base64.RawURLEncoding.DecodeString(string(head[:len(head)/4*4]))
	if err != nil || !bytes.Contains(text, []byte(`"alg"`)) && !bytes.Contains(text, []byte(`"typ"`)) && !bytes.Contains(text, []byte(`"enc"`)) && !bytes.Contains(text, []byte(`"kid"`)) {
		return found{}, false
	}
	for !open && i < len(s.b) && s.b[i] == '.' {
		i++
		i += urlSafe.run(s.b[i:], unbounded)
	}
	return found{from: from, to: i, public: 3, format: h.format}, true
}

// maxUser is how long what stands before a URL's host may be.
const maxUser = 512

// matchURL takes the password before the last @ of what names the host.
func matchURL(s *scan, h *hit, from int) (found, bool) {
	at := from + len("://")
	end, last, colon := at, -1, -1
	for ; end < len(s.b) && end-at < maxUser; end++ {
		c := s.b[end]
		if c <= ' ' || c >= 0x7f || c == '/' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '\\' || c == '`' || c == '(' || c == ')' {
			break
		}
		if c == '@' {
			last = end
		}
		if c == ':' && colon < 0 {
			colon = end
		}
	}
	if last < 0 || colon >= 0 && colon > last {
		return found{}, false
	}
	user, password := s.b[at:last], []byte(nil)
	begin := at
	if colon >= 0 {
		user, password, begin = s.b[at:colon], s.b[colon+1:last], colon+1
	}
	if len(password) == 0 || string(password) == "x-oauth-basic" { // then the user is the secret
		if len(user) < 20 || !secretLike(user, 3) {
			return found{}, false
		}
		begin, last = at, at+len(user)
		password = user
	}
	if standsIn(password) || slices.Contains(documented, string(password)) {
		return found{}, false
	}
	if special, n := s.specific(begin); special != nil {
		return found{from: begin, to: last, public: n, format: special}, true
	}
	return found{from: begin, to: last, format: h.format}, true
}

// documented are passwords of documents.
var documented = []string{"password", "pass", "passwd", "xxxxx"}

// standsIn says that a password is a variable of a shell or a template, or masked already.
func standsIn(p []byte) bool {
	return p[0] == '$' || p[0] == '<' || p[0] == '{' || p[0] == '[' || p[0] == '*' || bytes.Contains(p, []byte("${")) || bytes.Contains(p, []byte("{{")) ||
		p[0] == '%' && p[len(p)-1] == '%' || len(p) == 2 && p[0] == '%'
}

var blanks = classOf(" \t")

func skipQuotes(b []byte, i int) int {
	for n := 0; i < len(b) && n < 9 && (b[i] == '\\' || b[i] == '"' || b[i] == '\'' || b[i] == '`'); n++ {
		if b[i] == '\\' && !(i+1 < len(b) && (b[i+1] == '\\' || b[i+1] == '"' || b[i+1] == '\'')) {
			break
		}
		i++
	}
	return i
}

// credentials is how much of the text from i on may be a credential of a header.
func (s *scan) credentials(i int) int { return s.values.value(credentialSet, s.b, i, unbounded) }

// authorizationAt takes the credentials at a place, but their scheme.
func (s *scan) authorizationAt(at int) (found, bool) {
	n := s.credentials(at)
	if n < 2 {
		return found{}, false
	}
	// A word and a blank are the scheme.
	if at+n < len(s.b) && s.b[at+n] == ' ' && alnumDash.run(s.b[at:], n) == n && n <= 20 {
		next := at + n + 1
		if k := s.credentials(next); k > 0 {
			at, n = next, k
		}
	}
	v := s.b[at : at+min(n, checked)]
	if n < 6 || standIn(v) || v[0] == '$' || v[0] == '{' || v[0] == '[' || bytes.IndexByte(v, '(') >= 0 || !hasDigitOrLong(v) {
		return found{}, false
	}
	f := found{from: at, to: at + n - unopened(s.b[at:at+n]), format: &authorization}
	if special, public := s.specific(at); special != nil {
		f.format, f.public = special, public
	}
	return f, true
}

// hasDigitOrLong leaves words of a sentence and of a program alone.
func hasDigitOrLong(v []byte) bool {
	_, _, digit, _ := kinds(v)
	return digit > 0 || len(v) >= 16 && entropy(v) >= 3.5 && bytes.IndexByte(v, '.') < 0
}

var alnumDash = classOf("A-Za-z0-9-")

// How many values of a cookie header, and bytes of it, are looked at.
const (
	maxPairs  = 32
	maxCookie = 1 << 10
)

// cookieAt takes the values of a cookie header at a place, up to the last one that is long and mixed.
func (s *scan) cookieAt(at int) (found, bool) {
	n := s.cookies.value(cookieSet, s.b, at, unbounded)
	line := s.b[at : at+min(n, maxCookie)]
	eq := bytes.IndexByte(line[:min(len(line), maxName)], '=')
	if eq < 0 {
		return found{}, false
	}
	// All pairs up to the last long value are one secret: their names tell little.
	end := 0
	for i, pairs := eq+1, 0; i <= len(line) && pairs < maxPairs; pairs++ {
		n := bytes.IndexByte(line[i:], ';')
		if n < 0 {
			n = len(line) - i
		}
		v := line[i : i+n]
		if k := bytes.IndexAny(v, " \t"); k >= 0 { // what follows is no cookie's
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
		return found{}, false
	}
	if n > maxCookie { // of a longer one the rest is not looked at
		end = n
	}
	from := at + eq + 1
	return found{from: from, to: at + end - unopened(s.b[from:at+end]), format: &authorization}, true
}

// cookieSet is what a cookie header may hold.
var cookieSet = classOf(" \t!#-&(-~\x80-\xff")

func matchBearer(s *scan, h *hit, from int) (found, bool) {
	at := from + len(h.keyword)
	if from > 0 && alnum[s.b[from-1]] {
		return found{}, false
	}
	n := bearerSet.run(s.b[at:], unbounded)
	v := s.b[at : at+min(n, checked)]
	if n < 16 || !secretLike(v, 3) || standIn(v) {
		return found{}, false
	}
	f := found{from: at, to: at + n, format: h.format}
	if special, public := s.specific(at); special != nil {
		f.format, f.public = special, public
	}
	return f, true
}

func matchBasic(s *scan, h *hit, from int) (found, bool) {
	at := from + len(h.keyword)
	n := base64Set.run(s.b[at:], 1024)
	if n < 8 || from > 0 && alnum[s.b[from-1]] {
		return found{}, false
	}
	text := make([]byte, 0, 1024)
	text, err := base64.RawStdEncoding.AppendDecode(text, bytes.TrimRight(s.b[at:at+n], "="))
	if err != nil || bytes.IndexByte(text, ':') < 0 {
		return found{}, false
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return found{}, false
		}
	}
	return found{from: at, to: at + n, format: h.format}, true
}

func matchUser(s *scan, h *hit, from int) (found, bool) {
	at := skipQuotes(s.b, from+len(h.keyword))
	n := userSet.run(s.b[at:], 128)
	if n == 0 || at+n == len(s.b) || s.b[at+n] != ':' {
		return found{}, false
	}
	at += n + 1
	n = s.credentials(at)
	if v := s.b[at : at+min(n, checked)]; n < 6 || standIn(v) || v[0] == '$' || v[0] == '[' || !secretLike(v, 2) {
		return found{}, false
	}
	return found{from: at, to: at + n - unopened(s.b[at:at+n]), format: h.format}, true
}

// secretLike says that v has letters and digits, and is not regular.
func secretLike(v []byte, bits float64) bool {
	v = v[:min(len(v), checked)]
	lower, upper, digit, _ := kinds(v)
	return lower+upper > 0 && digit > 0 && entropy(v) >= bits
}
