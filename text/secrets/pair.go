package secrets

import (
	"bytes"
	"slices"
)

// pair is the state after the name of a secret that is itself a value, as in {"name": "DB_PASSWORD", "value": "…"}.
type pair struct {
	format  *Format // nil if there is none
	loose   bool
	name    []byte
	only    byte // the only byte that may follow; 0 for any
	room    int  // number of bytes within which the value must start
	members int  // number of other members that may stand between
}

const (
	lineObject  = 40 // maximum length of {"line":N,"text":"
	pairRoom    = 512
	pairMembers = 4
)

// Names of the members, attributes or elements that hold a secret's name and its value, and functions that take both.
var (
	nameNames  = []string{"name", "key", "parameterkey", "parametername", "variable"}
	valueNames = []string{"value", "parametervalue", "securevalue", "defaultvalue", "val"}
	setters    = []string{"define", "setenv", "putenv", "setproperty", "getenv", "env"}
)

func isNameName(word []byte) bool  { return isOneOf(word, nameNames) }
func isValueName(word []byte) bool { return isOneOf(word, valueNames) }

func isOneOf(word []byte, list []string) bool {
	return len(word) <= 16 && slices.Contains(list, string(bytes.ToLower(word)))
}

// paired matches the value of a secret that is named in one of these ways, b[begin:end] being the name:
//
//   - name: DB_PASSWORD          {"name": "DB_PASSWORD", "value": "…"}    <add key="ApiKey" value="…"/>
//     value: …                   <name>db.password</name>                  <property name="password">…</property>
//     define('DB_PASSWORD', '…')   <value>…</value>
func (s *scan) paired(begin, end int) (finding, bool) {
	b := s.b
	i := begin - openingQuotes(b[max(s.doneTo, begin-9):begin])
	quoted := i < begin
	i -= blanks.back(b[s.doneTo:i], 16)
	if i <= s.doneTo {
		return finding{}, false
	}
	sep := b[i-1]
	i--
	i -= blanks.back(b[s.doneTo:i], 16)
	if sep != '(' {
		i -= openingQuotes(b[max(s.doneTo, i-9):i])
	}
	n := alnum.back(b[s.doneTo:i], 16)
	word := b[i-n : i]
	isSetter := sep == '(' && quoted && isOneOf(word, setters)
	switch {
	case isSetter:
	case (sep == ':' || sep == '=') && isNameName(word):
	case sep == '>' && !quoted && i-n > 0 && b[i-n-1] == '<' && isNameName(word):
	default:
		return finding{}, false
	}
	name := b[begin:end]
	f, loose := classify(name)
	if f == nil || f == &authorization {
		return finding{}, false
	}
	p := pair{format: f, loose: loose, name: bytes.Clone(name), room: pairRoom, members: pairMembers}
	start := i - n
	match := s.pairValue
	if isSetter {
		match = s.argument
	} else if found, ok := s.valueBefore(p, start-openingQuotes(b[s.doneTo:start])); ok {
		return found, true
	}
	found, ok := match(p, skipQuotes(b, end))
	found.leadLen, found.far = found.from-start, true
	return found, ok
}

// maxBefore is the maximum number of bytes between the start of a value's member and the member of its name.
const maxBefore = 300

// valueBefore matches the value of a pair in the member that ends directly before i.
func (s *scan) valueBefore(p pair, i int) (finding, bool) {
	near := max(s.doneTo, i-maxBefore)
	before := s.b[near:i]
	at := bytes.LastIndex(bytes.ToLower(before), []byte("value"))
	if at < 0 {
		return finding{}, false
	}
	from := near + at - alnum.back(before[:at], 16)
	sep := valueName(s.b, from)
	if sep < 0 {
		return finding{}, false
	}
	valueAt, v, ok := s.valueAt(from, sep+1+blanks.run(s.b[sep+1:], 16), maxBefore, s.b[sep])
	if !ok || valueAt+len(v.text) > i {
		return finding{}, false
	}
	between := s.b[valueAt+len(v.text) : i]
	lines := bytes.Count(between, []byte("\n"))
	if betweenSet.run(between, len(between)) < len(between) || lines > 1 ||
		lines == 1 && !isValueLine(s.b[lineStart(s.b, from):]) {
		return finding{}, false
	}
	f, ok := p.finding(valueAt, v, true)
	f.leadLen = valueAt - from + openingQuotes(s.b[s.doneTo:from])
	return f, ok
}

// betweenSet is the set of bytes between two members.
var betweenSet = classOf(" \t\r\n,\"'\\n")

// valueName returns the position of the : or = after the name at i, if it is value or the like; −1 if it is not.
func valueName(b []byte, i int) int {
	n := alnum.run(b[i:], 17)
	k := skipQuotes(b, i+n)
	k += blanks.run(b[k:], 16)
	if !isValueName(b[i:i+n]) || k == len(b) || b[k] != ':' && b[k] != '=' {
		return -1
	}
	return k
}

// isValueLine reports whether b starts with a line whose first member is a value, whose name may follow.
func isValueLine(b []byte) bool { return valueName(b, lineMarks.run(b, maxLead)) >= 0 }

var lineMarks = classOf(" \t+{\"'-")

func lineStart(b []byte, i int) int { return bytes.LastIndexByte(b[:i], '\n') + 1 }

// openingQuotes returns the number of bytes of quotes, with the backslashes before them, at the end of b.
func openingQuotes(b []byte) int {
	if n := len(b); n > 0 && (b[n-1] == '"' || b[n-1] == '\'' || b[n-1] == '`') {
		return 1 + slash.back(b[:n-1], maxSlashes)
	}
	return 0
}

// argument matches a literal that is the next argument of a call.
func (s *scan) argument(p pair, i int) (finding, bool) {
	b := s.b
	i += blanks.run(b[i:], 8)
	if i == len(b) || b[i] != ',' {
		return finding{}, false
	}
	i++
	i += blanks.run(b[i:], 8)
	q := i + slash.run(b[i:], 8)
	if q == len(b) || b[q] != '"' && b[q] != '\'' {
		return finding{}, false
	}
	at, v, ok := s.quotedAt(q, q-i, unbounded)
	v.env = isVariable(p.name)
	return p.finding(at, v, ok)
}

// finding returns the finding of a value; ok is false if it is no secret.
func (p pair) finding(at int, v assignedValue, ok bool) (finding, bool) {
	if !ok || !v.isSecret(p.format) || !v.isSecretOf(p.format, p.name, p.loose) {
		return finding{}, false
	}
	return finding{from: at, to: at + len(v.text), format: p.format}, true
}

// pairValue matches the value of the pair from i on, after its name or another member. If b ends before, the state is
// kept for the next text.
func (s *scan) pairValue(p pair, i int) (finding, bool) {
	b, begin := s.b, i
	for p.members > 0 && i-begin < p.room {
		i += gapLen(b[i:])
		if i == len(b) {
			p.room -= i - begin
			s.block.pair = p
			return finding{}, false
		}
		lineStart := b[max(0, i-1)] == '\n' || i == 0 && !s.midLine
		if p.only != 0 && b[i] != p.only {
			return finding{}, false
		}
		p.only = 0
		if n := numberPrefix(b[i:min(len(b), i+256)]); n > 0 {
			i += n
			continue
		}
		switch c := b[i]; {
		case c == ',' || c == '+' && lineStart || c == ';':
			i++
			continue
		case c == '}': // jq shows each line of a text as an object
			i, p.only = i+1, '{'
			continue
		case c == '{':
			n := bytes.Index(b[i:min(len(b), i+lineObject)], []byte(`,"text":"`))
			if n < 0 || !bytes.HasPrefix(b[i:], []byte(`{"line":`)) {
				return finding{}, false
			}
			i += n + len(`,"text":"`)
			continue
		case c == '#':
			n := bytes.IndexByte(b[i:min(len(b), i+p.room)], '\n')
			if n < 0 {
				n = len(b) - i
			}
			i += n
			continue
		case c == '>':
			if next := i + 1 + gapLen(b[i+1:]); next == len(b) || b[next] == '<' {
				i, p.only = next, '<'
				continue
			}
			return p.finding(s.element(i + 1)) // the value is the text of the element
		case c == '<':
			k := tagName.run(b[i+1:], 16)
			tag := b[i+1 : i+1+k]
			if i+k+1 == len(b) || b[i+k+1] != '>' {
				return finding{}, false
			}
			i += k + 2
			if isValueName(tag) || string(tag) == "string" {
				return p.finding(s.element(i))
			}
			if len(tag) == 0 || tag[0] != '/' || !isNameName(tag[1:]) {
				return finding{}, false
			}
			continue
		}
		at := skipQuotes(b, i)
		if at < len(b) && b[at] == '@' { // an attribute in a record of XML: {"@name":"db.password","@value":"…"}
			at++
		}
		n := memberSet.run(b[at:], maxName)
		word := bytes.TrimRight(b[at:at+n], ":")
		n = len(word)
		if k := bytes.LastIndexAny(word, "/.:"); k >= 0 {
			word = word[k+1:]
		}
		k := skipQuotes(b, at+n)
		k += blanks.run(b[k:], 16)
		if n == 0 || k == len(b) || b[k] != ':' && b[k] != '=' || isNameName(word) {
			return finding{}, false
		}
		sep := b[k]
		if k++; k < len(b) && b[k] == '>' {
			k++
		}
		k += blanks.run(b[k:], 16)
		if isValueName(word) {
			valueAt, v, ok := s.valueAt(at, k, checkedBytes, sep)
			v.env = isVariable(p.name) && !v.code
			if v.label && isScalarHeader(v.text) {
				return s.scalarAfter(scalar{format: p.format, loose: p.loose, name: p.name}, at, valueAt+len(v.text))
			}
			f, ok := p.finding(valueAt, v, ok)
			if ok && len(v.text) == checkedBytes {
				_, v, _ = s.valueAt(at, k, unbounded, sep)
				f.to = f.from + len(v.text)
			}
			return f, ok
		}
		if i = s.skipValue(k, p.room, sep); i < 0 {
			return finding{}, false
		}
		p.members--
	}
	return finding{}, false
}

var (
	tagName   = classOf("A-Za-z/")
	memberSet = classOf("A-Za-z0-9_./:-")
)

// element reads the text of an element up to the next tag, if it has no blanks.
func (s *scan) element(i int) (at int, v assignedValue, ok bool) {
	n := s.elements.of(elementSet.run, s.b, i, unbounded)
	if n == 0 || i+n < len(s.b) && s.b[i+n] != '<' || i+n == len(s.b) && s.final {
		return 0, v, false
	}
	return i, assignedValue{text: s.b[i : i+n]}, true
}

var elementSet = classOf("!-;=-~\x80-\xff")

// skipValue returns the position after the value of another member; −1 if it is an object or too long.
func (s *scan) skipValue(i, room int, sep byte) int {
	b := s.b[:min(len(s.b), i+room)]
	if i >= len(b) {
		return i
	}
	switch c := b[i]; c {
	case '{', '[':
		return -1
	case '"', '\'':
		for k := i + 1; k < len(b); k++ {
			if b[k] == c && b[k-1] != '\\' {
				return k + 1
			}
			if b[k] == '\n' {
				return -1
			}
		}
		return -1
	}
	for i < len(b) && bytes.IndexByte([]byte(",}\n\\"), b[i]) < 0 && (sep == ':' || b[i] != ' ') {
		i++
	}
	return i
}
