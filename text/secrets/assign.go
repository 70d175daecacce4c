package secrets

import (
	"bytes"
	"slices"
	"strings"
)

// matchAssigned matches the value that is assigned to the name at from.
func matchAssigned(s *scan, h *hit, from int) (finding, bool) {
	b := s.b
	begin := from - nameSet.back(b[s.doneTo:from], maxName)
	if n, _ := escapeAround(b, begin); begin+n <= from {
		begin += n
	}
	end := from + len(h.keyword)
	for end > from && !nameSet[b[end-1]] { // the keyword continues after the name, as in "pass="
		end--
	}
	end += nameSet.run(b[end:], maxName)
	if s.lastName == (cachedRun{begin, end}) { // another keyword of the same name was tried before
		return finding{}, false
	}
	f, ok := s.assigned(begin, end)
	if !ok {
		s.lastName = cachedRun{begin, end}
	}
	return f, ok
}

// assigned matches the value that is assigned to the name b[begin:end].
func (s *scan) assigned(begin, end int) (finding, bool) {
	b := s.b
	// Check the value first: most names have none.
	at, v, ok := s.assignment(begin, end, checkedBytes)
	if !ok {
		return s.paired(begin, end)
	}
	name := bytes.TrimLeft(b[begin:end], "-.")
	v.env = v.env && isVariable(name)
	v.code = v.code || begin > 0 && b[begin-1] == ':' // as in arn:aws:secretsmanager:REGION:ID:secret:NAME
	if v.label && isScalarHeader(v.text) {
		f, loose := classify(name)
		if f == nil || f == &authorization {
			return finding{}, false
		}
		return s.scalarAfter(scalar{format: f, loose: loose, name: bytes.Clone(b[begin:end])}, begin, at+len(v.text))
	}
	special, public := s.tokenAt(at)
	if special == nil && !v.isSecret(&assigned) { // before the check of the name, which is more expensive
		return finding{}, false
	}
	f, loose := classify(name)
	switch {
	case f == nil:
		return finding{}, false
	case special != nil:
		f = special
	case f == &authorization, !v.isSecretOf(f, name, loose), v.label && string(bytes.ToLower(name)) == "pass",
		v.inList && isSecretVariable(v.text),
		len(name) > 9 && len(v.text) >= len(name) && bytes.EqualFold(name, v.text[:len(name)]): // repeats the name
		return finding{}, false
	}
	if len(v.text) == checkedBytes {
		at, v, _ = s.assignment(begin, end, unbounded)
	}
	return finding{from: at, to: at + len(v.text), public: public, format: f}, true
}

// assignedValue is the value of an assignment, as written.
type assignedValue struct {
	text   []byte // truncated to the limit of the caller
	quoted bool
	label  bool // unquoted after a colon
	inList bool // unquoted after a colon and followed by a comma or bracket, as in source code
	code   bool // unquoted and followed by a sign that ends an expression or a statement
	env    bool // of an environment variable: NAME=value on a line of its own
	line   bool // unquoted, alone with its name on a line, as in a file of settings
}

var (
	noSpace = classOf("!-~")
	inText  = classOf("!#-&(-+.-:<-_a-~-")             // characters of a value on a line within a JSON string
	bare    = classOf("!#-%*+.-:=?-Z^_a-z~\x80-\xff-") // without quotes, brackets, backslash and , ; & |
	typeSet = classOf("A-Za-z0-9_.<>?*[]")
)

// assignment finds the value after the name b[begin:end] and returns at most limit bytes of it.
func (s *scan) assignment(begin, end, limit int) (at int, v assignedValue, ok bool) {
	b := s.b
	if bytes.HasPrefix(b[begin:], []byte("--")) && end < len(b) && b[end] == ' ' { // --name VALUE
		return s.valueAt(begin, end+1, limit, ' ')
	}
	i := skipQuotes(b, end)
	if i < len(b) && b[i] == ']' {
		i++
	}
	spaces := blanks.run(b[i:], 16)
	i += spaces
	if bytes.HasPrefix(b[i:], []byte("?: ")) { // the shape of records marks a member that some lack: password?: "…"
		i++
	}
	if spaces == 0 && bytes.HasPrefix(b[i:], []byte(": ")) && s.pointed(begin) {
		return s.leafAt(i+len(": "), limit)
	}
	n, sep := separator(b[i:], spaces > 0, begin > 0 && b[begin-1] == '<')
	if n == 0 {
		return s.spacedValue(begin, end, limit)
	}
	i += n
	i += blanks.run(b[i:], 16)
	for _, text := range elementTexts {
		if bytes.HasPrefix(b[i:], text) {
			i += len(text)
			break
		}
	}
	return s.valueAt(begin, i, limit, sep)
}

// minSpaced is the minimum length, in bytes, of a value that only a blank separates from its name: words are shorter.
const minSpaced = 8

// spacedValue finds a value that follows its name and a blank on a line of their own, as in .properties and .netrc.
func (s *scan) spacedValue(begin, end, limit int) (at int, v assignedValue, ok bool) {
	at = end + blanks.run(s.b[end:], 16)
	n := noSpace.value(s.b[at:], limit)
	lead, _, known := s.lead(begin)
	next := at + n
	ok = at > end && known && len(lead) == 0 && n >= minSpaced && n < limit && (next == len(s.b) || lineEnds[s.b[next]])
	return at, assignedValue{text: s.b[at:next]}, ok
}

var lineEnds = classOf("\r\n")

// elementTexts stand before the text of an element in records of XML, {"password":[{"#text":"…"}]}, and in shapes.
var elementTexts = [][]byte{[]byte(`[{"#text":`), []byte(`{"#text": `), []byte(`[1] {"#text": `)}

// separator returns the length of the separator at the start of b, and its kind as in [scan.valueAt]; 0 if there is
// none. spaced is true if a blank stands between the name and b, inTag if "<" stands before the name.
func separator(b []byte, spaced, inTag bool) (n int, sep byte) {
	if len(b) == 0 {
		return 0, 0
	}
	next := byte(' ') // at the end of the text too
	if len(b) > 1 {
		next = b[1]
	}
	switch b[0] {
	case '=':
		switch {
		case next == '=': // a comparison
			return 0, 0
		case next == '>':
			return 2, '='
		case spaced, next == ' ':
			return 1, '='
		}
		return 1, 'E' // as in .env files
	case ':':
		if next == '=' {
			return 2, '='
		}
		if n := annotation(b[1:]); n > 0 {
			return 1 + n, '='
		}
		return 1, ':'
	case '>':
		if inTag && !spaced {
			return 1, '>'
		}
	}
	return 0, 0
}

// annotation returns the length of a type and the "=" after it, such as ` str =` in `password: str = "x"`; 0 if b does
// not begin with that.
func annotation(b []byte) int {
	n := blanks.run(b, 4)
	size := typeSet.run(b[n:], 40)
	if n == 0 || size == 0 {
		return 0
	}
	n += size
	n += blanks.run(b[n:], 4)
	if n+1 < len(b) && b[n] == '=' && (b[n+1] == ' ' || b[n+1] == '"' || b[n+1] == '\'') {
		return n + 1
	}
	return 0
}

// maxPointed is the maximum length, in bytes, of the JSON Pointer before a name.
const maxPointed = 512

// pointed reports whether the name at begin is the end of a JSON Pointer at the start of a line. grep shows JSON
// values in this form: "/items/3/password: VALUE".
func (s *scan) pointed(begin int) bool {
	near := max(s.doneTo, begin-maxPointed)
	line := bytes.LastIndexByte(s.b[near:begin], '\n') + 1 + near
	if line == near && near > 0 && s.b[near-1] != '\n' {
		return false
	}
	pointer := s.b[line:begin]
	return len(pointer) > 0 && pointer[0] == '/' && !bytes.Contains(pointer, []byte(": "))
}

// leafAt reads the value after such a pointer: a string without quotes, to the end of the line.
func (s *scan) leafAt(at, limit int) (int, assignedValue, bool) {
	n := noBlank.run(s.b[at:], limit)
	end := at + n
	switch {
	case n == 0:
		return 0, assignedValue{}, false
	case n == limit, end == len(s.b), s.b[end] == '\n', s.b[end] == '\r', s.b[end] == ' ' && s.cutAt(end):
		return at, assignedValue{text: s.b[at:end], quoted: true}, true
	}
	return 0, assignedValue{}, false
}

// noBlank is the set of bytes in a value after a pointer: all but blanks and control characters.
var noBlank = classOf("!-~\x80-\xff")

// valueAt reads the value at i that is assigned to the name at begin. sep is the separator between them: ' ', '=',
// ':', '>', or 'E' for NAME=value without blanks.
func (s *scan) valueAt(begin, i, limit int, sep byte) (int, assignedValue, bool) {
	b := s.b
	if rest := b[i:]; len(rest) > 2 {
		switch { // skip a conversion or prefix before a string literal
		case bytes.HasPrefix(rest, []byte("[]byte(")):
			i += len("[]byte(")
		case (rest[1] == '"' || rest[1] == '\'') && bytes.IndexByte([]byte("bBrRuUfF@"), rest[0]) >= 0:
			i++
		}
	}
	if rest := b[i:]; sep == ':' && len(rest) > 0 && (rest[0] == '|' || rest[0] == '>') {
		return i, assignedValue{text: rest[:1+scalarSigns.run(rest[1:], 2)], label: true}, true
	}
	lead, escaped, known := s.lead(begin)
	env := sep == 'E' && known && (len(lead) == 0 || slices.Contains(envCommands, string(lead)))
	if q := i + slash.run(b[i:], 8); q < len(b) && (b[q] == '"' || b[q] == '\'' || b[q] == '`') {
		at, v, ok := s.quotedAt(q, q-i, limit)
		v.env = (env || sep == ':' && begin > 0 && b[begin-1] == '"') && b[q] != '`'
		return at, v, ok
	}
	set, alone := bare, known && len(lead) == 0
	switch {
	case sep == '>':
		set = elementSet
	case alone && (sep == 'E' || sep == ':'):
		if set = noSpace; escaped {
			set = inText
		}
	}
	n := set.value(b[i:], limit)
	if n < limit {
		n -= unopenedLen(b[i : i+n])
	}
	end := i + n
	switch {
	case n == 0:
		return 0, assignedValue{}, false
	case n == limit:
		return i, assignedValue{text: b[i:end], env: env}, true
	case sep == '>' && (end == len(b) || b[end] != '<'),
		sep != '>' && end < len(b) && strings.IndexByte("([{<", b[end]) >= 0: // a call or a type
		return 0, assignedValue{}, false
	}
	text := bytes.TrimRight(b[i:end], ",;")
	inList := sep == ':' &&
		(len(text) < n && b[i+len(text)] == ',' || end < len(b) && bytes.IndexByte([]byte(",})"), b[end]) >= 0)
	next := i + len(text)
	code := (sep == ':' || sep == '=') && next < len(b) && bytes.IndexByte([]byte(",;)}"), b[next]) >= 0
	return i, assignedValue{
		text: text, label: sep == ':', inList: inList, code: code, env: env, quoted: sep == '>',
		line: alone && (next == len(b) || lineEnds[b[next]]),
	}, true
}

// envCommands are the words before NAME=value that set an environment variable.
var envCommands = []string{"export", "ENV", "ARG", "set", "env", "\"", "'"}

// maxLead is the maximum length, in bytes, of the text that is read before a name on its line.
const maxLead = 80

// numberPrefix returns the length of the line number that a search or a listing shows before a line: "12:", "12-",
// "12|", "path:12:" or "12 (/pointer):"; 0 if there is none.
func numberPrefix(line []byte) int {
	i := blanks.run(line, 16)
	if n := pathSet.run(line[i:], 128); digits.run(line[i:], n) < n && i+n < len(line) && line[i+n] == ':' {
		i += n + 1
	}
	n := digits.run(line[i:], 9)
	i += n
	if n > 0 && bytes.HasPrefix(line[i:], []byte(" (/")) {
		i += max(0, bytes.Index(line[i:], []byte("):"))+1)
	}
	if n == 0 || i == len(line) || line[i] != ':' && line[i] != '-' && line[i] != '|' {
		return 0
	}
	return i + 1
}

// lead returns the text between the start of the line and the name at begin, without blanks and list or diff marks. In
// a JSON string, where escaped is true, an escaped newline starts a line. known is false if the line starts elsewhere.
func (s *scan) lead(begin int) (lead []byte, escaped, known bool) {
	b := s.b
	near := max(0, begin-maxLead)
	line := near + bytes.LastIndexByte(b[near:begin], '\n') + 1
	if n := bytes.LastIndex(b[line:begin], []byte(`\n`)); n >= 0 {
		line, escaped = line+n+len(`\n`), true
	} else if line == near && (near > 0 && b[near-1] != '\n' || near == 0 && s.midLine) {
		return nil, false, false
	}
	lead = b[line:begin]
	lead = bytes.TrimRight(bytes.TrimLeft(lead[numberPrefix(lead):], " \t+-"), " \t")
	if string(lead) == "export" {
		lead = nil
	}
	return lead, escaped, true
}

// quotedAt reads the value after the quote at q. depth is the number of backslashes before that quote.
func (s *scan) quotedAt(q, depth, limit int) (int, assignedValue, bool) {
	b, at := s.b, q+1
	for n := at; n < len(b) && n-at < limit; n++ {
		c := b[n]
		switch {
		case c == '"' || c == b[q]:
			k := slash.back(b[at:n], limit)
			if endsString(b[q:], c, k, depth, b[n+1:]) {
				end := n - k
				for m := lineEndEscape(b[at:end]); m > 0; m = lineEndEscape(b[at:end]) {
					end -= m
				}
				return at, assignedValue{text: b[at:end], quoted: true}, end > at
			}
		case c <= ' ' || c == 0x7f:
			if bytes.HasSuffix(b[at:n], cutOff) {
				return at, assignedValue{text: b[at : n-len(cutOff)], quoted: true}, true
			}
			if n > at && bytes.HasPrefix(b[n:], []byte(" ...")) {
				return at, assignedValue{text: b[at:n], quoted: true}, true
			}
			return 0, assignedValue{}, false
		}
	}
	end := min(len(b), at+limit)
	return at, assignedValue{text: b[at:end], quoted: true}, end > at && (end == at+limit || !s.final)
}

// endsString reports whether the quote c ends a quoted text or the JSON string that contains the text. open begins
// with the opening quote. slashes and depth are the numbers of backslashes before c and before the opening quote, and
// rest is the text after c.
func endsString(open []byte, c byte, slashes, depth int, rest []byte) bool {
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

// lineEndEscape returns the length of an escaped newline, carriage return or tab at the end of b; 0 if there is none.
func lineEndEscape(b []byte) int {
	if n := len(b); n > 1 && b[n-2] == '\\' && bytes.IndexByte([]byte("nrt"), b[n-1]) >= 0 {
		return 1 + slash.back(b[:n-1], maxSlashes)
	}
	return 0
}

// evidence returns the evidence that [isRandom] needs for this value.
func (v assignedValue) evidence(t []byte) int {
	switch {
	case !v.env && namesSecret(t):
		return secret
	case v.code:
		return inCode
	}
	return usual
}

// isSecretOf is isSecret for the format of a name. If loose is true, because other words follow the name's secret word,
// the value must be random.
func (v assignedValue) isSecretOf(f *Format, name []byte, loose bool) bool {
	if !loose {
		return f == &assigned || v.isSecret(f)
	}
	t := v.text[:min(len(v.text), checkedBytes)]
	lower, upper, _, _ := countKinds(t)
	number := bytes.TrimPrefix(t, []byte("0x"))
	hash := hexadecimal.run(number, len(t)) == len(number) && (len(number) < len(t) || !isUpper(name))
	date := len(t) > 6 && digits.run(t, 5) == 4 && t[4] == '-' && digits.run(t[5:], 2) == 2
	evidence, shortest := v.evidence(t), 8
	if !isUpper(name) {
		evidence, shortest = max(evidence, named), 12
	}
	return len(t) >= shortest && lower+upper > 0 && !hash && !date && entropy(t) >= 2.5 && isRandom(t, evidence)
}

// isSecret reports whether the value is likely a secret, given the format of the name to which it is assigned.
func (v assignedValue) isSecret(f *Format) bool {
	t := v.text[:min(len(v.text), checkedBytes)]
	lower, upper, digit, sign := countKinds(t)
	letters := lower + upper
	likely := isRandom(t, usual)
	if digit == 0 && !v.quoted && !v.env && !v.line && !likely || len(t) < 6 || entropy(t) < 2.25 || isCode(t) ||
		isPlaceholder(t) {
		return false
	}
	call := !v.quoted && isCall(t)
	random := likely && !call && isRandom(t, v.evidence(t))
	switch {
	case f == &assignedToken:
		return len(t) >= 16 && letters > 0 && entropy(t) >= 3 && (random || digit > 0 && (v.quoted || !pathOfWords(t)))
	case v.env && !call:
		return !isStandIn(t)
	case v.quoted && digit == len(t):
		return distinct(t) >= 5
	case letters == 0:
		return false
	case random:
		return true
	case !v.quoted && (digit > 0 || !v.line):
		return digit > 0 && !pathOfWords(t)
	case digit > 0:
		return true
	case sign > 0 && bytes.ContainsAny(t, "!@#%^&*+=?~"):
		return entropy(t) >= 2.5
	}
	return len(t) >= 20 && lower > 0 && upper > 0 && sign == 0 && entropy(t) >= 4.2
}

// isStandIn reports whether the value of an environment variable is no secret: a word such as "true" or "postgres", the
// name of another variable or of a file, or a member of an object, such as settings.PASSWORD.
func isStandIn(t []byte) bool {
	if slices.Contains(standIns, string(bytes.ToLower(t))) {
		return true
	}
	if _, _, digit, _ := countKinds(t); digit > 0 || pathSet.run(t, len(t)) < len(t) {
		return false
	}
	if dot := bytes.LastIndexByte(t, '.'); bytes.IndexByte(t, '/') > 0 || dot > 0 && isExtension(t[dot+1:]) {
		return !isRandom(t, usual)
	}
	return namesSecret(t) && !isRandom(t, usual) || bytes.IndexByte(t, '.') > 0 && wordness(t) > len(t)/2
}

func isExtension(t []byte) bool {
	return len(t) >= 2 && len(t) <= 5 && smallLetters.run(t, len(t)) == len(t)
}

var smallLetters = classOf("a-z")

// standIns are words that stand for a value, or that everybody uses as a first password.
var standIns = strings.Fields("true false null none undefined default unset empty unknown missing disabled enabled " +
	"required optional string boolean number integer password passwd secret postgres mysql redis rabbitmq admin " +
	"changeit sample testing hidden removed omitted sensitive")

// isCall reports whether an unquoted value is a call, an index or a conversion: a name before an opening bracket.
func isCall(t []byte) bool {
	n := callSet.run(t, len(t))
	return n > 0 && n < len(t) && strings.IndexByte("([<{", t[n]) >= 0 && !digits[t[0]] && !isRandom(t[:n], usual)
}

var callSet = classOf("A-Za-z0-9_.:$>-")

// isCode reports whether a value looks like source code or a name: a path, a URL, a hash, a format string, a pattern.
func isCode(t []byte) bool {
	if bytes.HasPrefix(t, []byte("sha")) && bytes.IndexAny(t[:min(len(t), 8)], "-:") > 0 {
		return true
	}
	if strings.IndexByte(`$<{[\`, t[0]) >= 0 || strings.IndexByte(`.~(%*:`, t[0]) >= 0 && !isMixed(t, 3.2) || t[0] == '/' && isPath(t) || bytes.HasPrefix(t, []byte("vault:")) ||
		bytes.HasPrefix(t, []byte("os.")) {
		return true
	}
	t = bytes.TrimPrefix(bytes.TrimRight(t, "="), []byte("base64:"))
	seen, _ := byteSet(t)
	for _, s := range codeSigns {
		if seen.mayHold(s) && bytes.Contains(t, s) && (len(s) > 2 || !looksRandom(t)) { // two signs may be chance
			return true
		}
	}
	return seen['-'] && isPattern(t)
}

var codeSigns = bytes.Fields([]byte(
	`:// %s %v %d %q \x \u (? () == :: -> arn: #{ [masked secrets/ process.env`,
))

// isPattern reports whether t has ranges of a regular expression, such as [0-9]. Base64 may have one of them by chance.
func isPattern(t []byte) bool {
	n := 0
	for _, s := range []string{"a-z", "A-Z", "0-9"} {
		if bytes.Contains(t, []byte(s)) {
			n++
		}
	}
	return n > 1 || n == 1 && (len(t) < 16 || bytes.IndexByte(t, '[') >= 0)
}

// isPath reports whether t, which starts with a slash, is a path by its first name: small letters, digits and signs.
// Base64 may start with a slash, too.
func isPath(t []byte) bool {
	if lower, upper, digit, _ := countKinds(t); bytes.ContainsAny(t, "+=") ||
		lower > 0 && upper > 0 && digit > 0 && isRandom(t, usual) {
		return false
	}
	n := dirSet.run(t[1:], len(t)) + 1
	return n > 2 && (n == len(t) || t[n] == '/') || n == 1 && len(t) > 1 && t[1] == '/'
}

var dirSet = classOf("a-z0-9_.-")

var (
	pathStart = classOf("A-Za-z_&*")
	pathSet   = classOf("A-Za-z0-9_./-")
)

// pathOfWords reports whether an unquoted value looks like an identifier or a package name: words joined by dots or
// underscores, with few digits.
func pathOfWords(t []byte) bool {
	if !pathStart[t[0]] || pathSet.run(t[1:], len(t)) < len(t)-1 ||
		len(t) >= 24 && entropy(t) >= 4.2 && bytes.IndexByte(t, '.') < 0 {
		return false
	}
	_, _, digit, _ := countKinds(t)
	if bytes.IndexByte(t, '.') > 0 || bytes.IndexByte(t, '_') > 0 {
		return digit*4 < len(t)
	}
	return digit*8 < len(t)
}
