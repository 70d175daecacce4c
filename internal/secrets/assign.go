package secrets

import (
	"bytes"
	"slices"
)

var (
	assigned = Format{Name: "password", Of: "value of a member, variable, setting, flag or element whose name says password, secret, API key, access key, private key …",
		Source: "the names that programs use", fold: true,
		Keywords: "passw|passphrase|_pass|pass=|pass:|pass\"|pass'|pwd=|pwd:|pwd\"|pwd'|pwd >|secret|apikey|api_key|api-key|api.key|accesskey|access_key|access-key|privatekey|private_key|private-key|" +
			"credential|accountkey|account_key|sharedaccesskey|authkey|auth_key|masterkey|master_key|master-key|signingkey|signing_key|signing-key|encryptionkey|encryption_key|encryption-key|key-data",
		Shape: "NAME, then one of = : => := or >, then a value of 6 or more, quoted or not",
		Check: "letters and digits or signs; no word of a program, path, URL, hash, variable or stand-in such as EXAMPLE"}
	assignedToken = Format{Name: "token", Of: "value of a member, variable, setting or flag whose name ends with token", Source: "the names that programs use", fold: true,
		Keywords: "token", Shape: "as password, a value of 16 or more", Check: "letters and digits, entropy of 3 bits"}
)

// Words by which a name says that its value is a secret: its last one, or its last two together.
var (
	secretWords = []string{"password", "passwd", "passwort", "passphrase", "pwd", "pass", "secret", "apikey", "credential", "credentials", "accesskey", "secretkey",
		"privatekey", "signingkey", "encryptionkey", "masterkey", "accountkey", "authkey", "sharedaccesskey", "sharedkey", "keydata", "clientsecret", "secretaccesskey"}
	secretEnds = []string{"password", "passwd", "secret", "apikey", "passphrase", "accesskey", "secretkey", "privatekey", "accountkey", "masterkey"}
	// Behind such a word these leave it a secret.
	openEnds = []string{"value", "b64", "base64", "text", "prod", "production", "dev", "test", "live", "staging", "default", "new", "old", "current"}
)

const maxName = 64

var nameSet = classOf("A-Za-z0-9_.-")

// classify says which kind of secret a name says its value is; nil for none.
func classify(name []byte) (f *Format, last string) {
	words := split(name)
	for n := len(words); n > 0; n-- {
		last = words[n-1]
		two, three := "", ""
		if n > 1 {
			two = words[n-2] + last
		}
		if n > 2 {
			three = words[n-3] + two
		}
		switch {
		case slices.Contains(secretWords, last), slices.Contains(secretWords, two), slices.Contains(secretWords, three):
			return &assigned, last
		case last == "token" || last == "authtoken":
			return &assignedToken, last
		case last == "authorization" || last == "cookie":
			return &authorization, last
		}
		for _, e := range secretEnds {
			if len(last) > len(e) && last[len(last)-len(e):] == e {
				return &assigned, last
			}
		}
		if len(last) > 5 && last[len(last)-5:] == "token" {
			return &assignedToken, last
		}
		if !slices.Contains(openEnds, last) && digits.run([]byte(last), 9) < len(last) {
			return nil, ""
		}
	}
	return nil, ""
}

// split gives the words of a name in lower case: "AWS_SecretKey" is aws, secret, key. At most the last six.
func split(name []byte) []string {
	var words []string
	end := len(name)
	add := func(i int) {
		if i < end && len(words) < 6 {
			words = append(words, string(bytes.ToLower(name[i:end])))
		}
	}
	for i := len(name) - 1; i >= 0; i-- {
		c := name[i]
		switch {
		case !alnum[c]:
			add(i + 1)
			end = i
		case c >= 'A' && c <= 'Z' && (i+1 < end && name[i+1] >= 'a' && name[i+1] <= 'z' || i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z'):
			add(i)
			end = i
		}
	}
	add(0)
	slices.Reverse(words)
	return words
}

// matchAssigned takes the value that a name around from is given.
func matchAssigned(s *scan, h *hit, from int) (found, bool) {
	b := s.b
	begin := from - nameSet.back(b[s.lo:from], maxName)
	if n, _ := escaped(b, begin); begin+n <= from {
		begin += n
	}
	end := from + len(h.keyword)
	for end > from && !nameSet[b[end-1]] { // the keyword has more than the name
		end--
	}
	end += nameSet.run(b[end:], maxName)
	if s.unnamed == (stretch{begin, end}) { // several keywords are in one name
		return found{}, false
	}
	f, ok := s.assigned(begin, end)
	if !ok {
		s.unnamed = stretch{begin, end}
	}
	return f, ok
}

// assigned takes the value that the name in b[begin:end] is given.
func (s *scan) assigned(begin, end int) (found, bool) {
	b := s.b
	// Before the name is looked at, for most have no value.
	at, v, ok := s.assignment(begin, end, checked)
	if !ok {
		return found{}, false
	}
	special, public := s.specific(at)
	if special == nil && !v.secret(&assigned) { // dearer than to look at the value is the name
		return found{}, false
	}
	name := bytes.TrimLeft(b[begin:end], "-.")
	f, _ := classify(name)
	switch {
	case f == nil:
		return found{}, false
	case special != nil:
		f = special
	case f == &authorization, f != &assigned && !v.secret(f), v.label && string(bytes.ToLower(name)) == "pass",
		v.inList && variable(v.text),
		len(name) > 9 && len(v.text) >= len(name) && bytes.EqualFold(name, v.text[:len(name)]): // it names itself
		return found{}, false
	}
	if len(v.text) == checked {
		at, v, _ = s.assignment(begin, end, unbounded)
	}
	return found{from: at, to: at + len(v.text), public: public, format: f}, true
}

// variable says that a value in a program is a variable whose own name says that it holds a secret, as testRSA2048PrivateKey.
func variable(t []byte) bool {
	if !alnum[t[0]] || digits[t[0]] || nameSet.run(t, len(t)) < len(t) || bytes.IndexByte(t, '-') >= 0 {
		return false
	}
	words := split(t)
	n := len(words)
	return n > 1 && (slices.Contains(secretWords, words[n-1]) || slices.Contains(secretWords, words[n-2]+words[n-1]) || words[n-1] == "token")
}

// given is a value as it stands.
type given struct {
	text   []byte // as much as was asked for
	quoted bool
	label  bool // it stands behind a colon, unquoted
	inList bool // and a comma or a bracket stands behind it, as in a program
}

var (
	noSpace = classOf("!-~")
	inText  = classOf("!#-&(-+.-:<-_a-~-") // of a line in a JSON string
	bare    = func() *class {
		c := *noSpace
		for _, b := range []byte("\"'`,;&<>()[]{}|\\") {
			c[b] = false
		}
		for b := 0x80; b < 0x100; b++ {
			c[b] = true
		}
		return &c
	}()
	typeSet = classOf("A-Za-z0-9_.<>?*[]")
)

// assignment finds the value behind the name in b[begin:end], at most limit bytes of it.
func (s *scan) assignment(begin, end, limit int) (at int, v given, ok bool) {
	b := s.b
	i := end
	flag := begin+2 < len(b) && b[begin] == '-' && b[begin+1] == '-'
	if flag && i < len(b) && b[i] == ' ' {
		return s.valueAt(begin, i+1, limit, ' ')
	}
	i = skipQuotes(b, i)
	if i < len(b) && b[i] == ']' {
		i++
	}
	n := blanks.run(b[i:], 16)
	i += n
	if i == len(b) {
		return 0, v, false
	}
	sep := b[i]
	switch {
	case sep == '=' && i+1 < len(b) && b[i+1] == '>':
		i += 2
	case sep == '=' && i+1 < len(b) && b[i+1] == '=':
		return 0, v, false
	case sep == '=':
		i++
		if n == 0 && i < len(b) && b[i] != ' ' {
			sep = 'E' // as in a file of variables
		}
	case sep == ':' && i+1 < len(b) && b[i+1] == '=':
		i += 2
		sep = '='
	case sep == ':' && n == 0 && i+1 < len(b) && b[i+1] == ' ' && s.pointed(begin):
		return s.leafAt(i+2, limit)
	case sep == ':':
		i++
		if k := blanks.run(b[i:], 4); k > 0 { // a type may stand between name and value
			if m := typeSet.run(b[i+k:], 40); m > 0 {
				j := i + k + m
				j += blanks.run(b[j:], 4)
				if j+1 < len(b) && b[j] == '=' && (b[j+1] == ' ' || b[j+1] == '"' || b[j+1] == '\'') {
					i, sep = j+1, '='
				}
			}
		}
	case sep == '>' && n == 0 && begin > 0 && b[begin-1] == '<':
		i++
	default:
		return 0, v, false
	}
	i += blanks.run(b[i:], 16)
	return s.valueAt(begin, i, limit, sep)
}

// maxPointed is how far before a name its JSON pointer may begin, in bytes.
const maxPointed = 512

// pointed says that the name at begin is the end of a JSON pointer that begins its line, as in a leaf that grep shows:
// "/items/3/password: VALUE".
func (s *scan) pointed(begin int) bool {
	near := max(s.lo, begin-maxPointed)
	line := bytes.LastIndexByte(s.b[near:begin], '\n') + 1 + near
	if line == near && near > 0 && s.b[near-1] != '\n' {
		return false
	}
	pointer := s.b[line:begin]
	return len(pointer) > 0 && pointer[0] == '/' && !bytes.Contains(pointer, []byte(": "))
}

// leafAt reads the value of such a leaf, a string without its quotes, to the line's end.
func (s *scan) leafAt(at, limit int) (int, given, bool) {
	n := noBlank.run(s.b[at:], limit)
	end := at + n
	switch {
	case n == 0:
		return 0, given{}, false
	case n == limit, end == len(s.b), s.b[end] == '\n', s.b[end] == '\r', s.b[end] == ' ' && s.cutAt(end):
		return at, given{text: s.b[at:end], quoted: true}, true
	}
	return 0, given{}, false
}

// noBlank is what a quoted value is of.
var noBlank = classOf("!-~\x80-\xff")

// valueAt reads the value at i of the name at begin.
func (s *scan) valueAt(begin, i, limit int, sep byte) (int, given, bool) {
	b := s.b
	if rest := b[i:]; len(rest) > 2 {
		switch { // what stands before a literal
		case bytes.HasPrefix(rest, []byte("[]byte(")):
			i += len("[]byte(")
		case (rest[1] == '"' || rest[1] == '\'') && bytes.IndexByte([]byte("bBrRuUfF@"), rest[0]) >= 0:
			i++
		}
	}
	if q := i + slash.run(b[i:], 8); q < len(b) && (b[q] == '"' || b[q] == '\'' || b[q] == '`') {
		return s.quotedAt(q, q-i, limit)
	}
	set := bare
	near := max(0, begin-80)
	line := near + bytes.LastIndexByte(b[near:begin], '\n') + 1
	toEnd := noSpace
	if n := bytes.LastIndex(b[line:begin], []byte(`\n`)); n >= 0 {
		line, toEnd = line+n+len(`\n`), inText
	}
	lead := bytes.TrimPrefix(bytes.TrimLeft(b[line:begin], " \t+-"), []byte("export "))
	if len(lead) == 0 && (sep == 'E' || sep == ':') {
		set = toEnd
	}
	n := set.value(b[i:], limit)
	if n < limit {
		n -= unopened(b[i : i+n])
	}
	end := i + n
	if n == 0 {
		return 0, given{}, false
	}
	if n == limit {
		return i, given{text: b[i:end]}, true
	}
	if sep == '>' && (end == len(b) || b[end] != '<') {
		return 0, given{}, false
	}
	if end < len(b) {
		switch b[end] {
		case '(', '[', '{', '<':
			if sep != '>' {
				return 0, given{}, false // a call or a type
			}
		}
	}
	text := bytes.TrimRight(b[i:end], ",;")
	inList := sep == ':' && (len(text) < n && b[i+len(text)] == ',' || end < len(b) && bytes.IndexByte([]byte(",})"), b[end]) >= 0)
	return i, given{text: text, label: sep == ':', inList: inList}, true
}

// quotedAt reads the value behind the quote at q, before which stand so many backslashes.
func (s *scan) quotedAt(q, depth, limit int) (int, given, bool) {
	b, at := s.b, q+1
	for n := at; n < len(b) && n-at < limit; n++ {
		c := b[n]
		switch {
		case c == '"' || c == b[q]:
			k := slash.back(b[at:n], limit)
			if ends(b[q:], c, k, depth, b[n+1:]) {
				end := n - k
				for m := lineEnds(b[at:end]); m > 0; m = lineEnds(b[at:end]) {
					end -= m
				}
				return at, given{text: b[at:end], quoted: true}, end > at
			}
		case c <= ' ' || c == 0x7f:
			if bytes.HasSuffix(b[at:n], cutOff) {
				return at, given{text: b[at : n-len(cutOff)], quoted: true}, true
			}
			if n > at && bytes.HasPrefix(b[n:], []byte(" ...")) {
				return at, given{text: b[at:n], quoted: true}, true
			}
			return 0, given{}, false
		}
	}
	end := min(len(b), at+limit)
	return at, given{text: b[at:end], quoted: true}, end > at && (end == at+limit || !s.final)
}

// ends says that the quote c with so many backslashes before it ends a text that began with open, or the JSON string in which
// that text stands: rest is what follows.
func ends(open []byte, c byte, slashes, depth int, rest []byte) bool {
	switch {
	case c != open[0]: // a text in single quotes within a JSON string
		return slashes%2 == 0 && (len(rest) == 0 || bytes.IndexByte([]byte(",:}]"), rest[0]) >= 0)
	case slashes < depth:
		return true
	case c != '"' && depth == 0:
		return slashes == 0
	}
	return slashes%(2*depth+2) == depth
}

// lineEnds is how long the escape of a line's end or a tab is that ends b; 0 for none.
func lineEnds(b []byte) int {
	if n := len(b); n > 1 && b[n-2] == '\\' && bytes.IndexByte([]byte("nrt"), b[n-1]) >= 0 {
		return 1 + slash.back(b[:n-1], maxSlashes)
	}
	return 0
}

// secret says whether a value given to a name of that kind is likely one.
func (v given) secret(f *Format) bool {
	t := v.text[:min(len(v.text), checked)]
	lower, upper, digit, sign := kinds(t)
	letters := lower + upper
	if digit == 0 && (!v.quoted || f == &assignedToken) || len(t) < 6 || entropy(t) < 2.25 || code(t) || standIn(t) {
		return false
	}
	if f == &assignedToken {
		return len(t) >= 16 && letters > 0 && digit > 0 && entropy(t) >= 3 && (v.quoted || !pathOfWords(t))
	}
	switch {
	case v.quoted && digit == len(t):
		return distinct(t) >= 5
	case letters == 0:
		return false
	case !v.quoted:
		return digit > 0 && !pathOfWords(t)
	case digit > 0:
		return true
	case sign > 0 && bytes.ContainsAny(t, "!@#%^&*+=?~"):
		return entropy(t) >= 2.5
	}
	return len(t) >= 20 && lower > 0 && upper > 0 && sign == 0 && entropy(t) >= 4.2
}

// code says that a value belongs to a program or names something: a path, a URL, a hash, a format, a pattern.
func code(t []byte) bool {
	if bytes.HasPrefix(t, []byte("sha")) && bytes.IndexAny(t[:min(len(t), 8)], "-:") > 0 {
		return true
	}
	switch t[0] {
	case '/', '.', '~', '$', '<', '{', '[', '(', '%', '\\', '*', ':':
		return true
	}
	seen, _ := bytesIn(t)
	for _, s := range codeSigns {
		if seen.mayHold(s) && bytes.Contains(t, s) {
			return true
		}
	}
	return false
}

var codeSigns = [][]byte{[]byte("://"), []byte("%s"), []byte("%v"), []byte("%d"), []byte("%q"), []byte("\\x"), []byte("\\u"), []byte("a-z"), []byte("A-Z"), []byte("0-9"), []byte("(?"),
	[]byte("()"), []byte("=="), []byte("::"), []byte("->"), []byte("arn:"), []byte("#{"), []byte("[masked"), []byte("secrets/"), []byte("process.env"), []byte("os.")}

// pathOfWords says that an unquoted value reads as a name in a program or a package: words with dots between them.
func pathOfWords(t []byte) bool {
	if !(t[0] >= 'A' && t[0] <= 'Z' || t[0] >= 'a' && t[0] <= 'z' || t[0] == '_' || t[0] == '&' || t[0] == '*') {
		return false
	}
	if len(t) >= 24 && entropy(t) >= 4.2 && bytes.IndexByte(t, '.') < 0 {
		return false
	}
	word := true
	_, _, digit, _ := kinds(t)
	for _, c := range t[1:] {
		word = word && (alnum[c] || c == '_' || c == '.' || c == '-' || c == '/')
	}
	if !word {
		return false
	}
	if bytes.IndexByte(t, '.') > 0 || bytes.IndexByte(t, '_') > 0 {
		return digit*4 < len(t)
	}
	return digit*8 < len(t)
}
