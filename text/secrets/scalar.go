package secrets

import "bytes"

// scalar is the state within a block scalar of YAML, whose lines follow "password: |" and are indented more than it.
type scalar struct {
	format *Format // nil if there is none
	loose  bool
	name   []byte
	indent int  // column of the name
	plus   bool // each line is an added line of a diff

	numbered bool // each line starts with its number
	masked   bool // a line before was a secret
}

// isScalarHeader reports whether a value starts a block scalar: | or >, with indicators of indentation and chomping.
func isScalarHeader(t []byte) bool {
	return len(t) > 0 && len(t) <= 3 && (t[0] == '|' || t[0] == '>') && scalarSigns.run(t[1:], 3) == len(t)-1
}

// marks is the set of bytes before the name of a block scalar on its line.
var marks = classOf(" \t+\"'-")

var scalarSigns = classOf("0-9+-")

// scalarAfter matches the secrets in the lines of the block scalar that belongs to the name or key at begin. i is
// the position after its header.
func (s *scan) scalarAfter(sc scalar, begin, i int) (finding, bool) {
	b := s.b
	if i += blanks.run(b[i:], 16); begin < s.scalarTo || i < len(b) && bytes.IndexByte([]byte("\r\n#"), b[i]) < 0 {
		return finding{}, false
	}
	line := bytes.LastIndexByte(b[max(0, begin-maxLead):begin], '\n') + 1 + max(0, begin-maxLead)
	if n := numberPrefix(b[line:begin]); n > 0 {
		line += n
		sc.numbered = true
	}
	if marks.run(b[line:begin], maxLead) < begin-line {
		return finding{}, false
	}
	sc.indent = begin - line
	if line < begin && b[line] == '+' {
		sc.plus = true
		sc.indent--
	}
	if begin > line && (b[begin-1] == '"' || b[begin-1] == '\'') {
		sc.indent--
	}
	next := bytes.IndexByte(b[i:], '\n')
	if next < 0 {
		s.block.scalar = sc
		return finding{}, false
	}
	return s.scalarLines(sc, i+next+1)
}

// scalarLines finds the lines from i on that are secrets. If b ends before the block scalar does, the state is kept for
// the next text.
func (s *scan) scalarLines(sc scalar, i int) (finding, bool) {
	var found []finding
	b := s.b
	if i == 0 && s.midLine {
		i = lineLeft(b)
	}
	for i < len(b) {
		start, at := i, i
		i += lineLeft(b[i:])
		line := bytes.TrimSuffix(b[at:i], []byte("\n"))
		s.scalarTo = max(s.scalarTo, start)
		if sc.plus {
			if !bytes.HasPrefix(line, []byte("+")) {
				return together(found)
			}
			line, at = line[1:], at+1
		}
		if sc.numbered {
			n := numberPrefix(line)
			if n == 0 {
				return together(found)
			}
			line, at = line[n:], at+n
		}
		n := blanks.run(line, len(line))
		text := bytes.TrimRight(line[n:], " \t\r")
		switch {
		case len(text) == 0:
			continue
		case n <= sc.indent || bytes.HasPrefix(text, []byte("-----")):
			return together(found)
		}
		if at += n; at < s.doneTo || noBlank.run(text, len(text)) < len(text) {
			continue
		}
		v := assignedValue{text: text}
		isSecret := v.isSecret(sc.format) && v.isSecretOf(sc.format, sc.name, sc.loose)
		if isSecret || sc.masked && !isCode(text) && (len(text) < 8 || !isPlaceholder(text)) {
			found = append(found, finding{
				from: at, to: at + len(text), leadLen: at - start, format: sc.format, more: sc.masked,
			})
			sc.masked = true
		}
	}
	s.scalarTo = len(b)
	s.block.scalar = sc
	return together(found)
}

// lineLeft returns the length of the rest of a line, with its newline.
func lineLeft(b []byte) int {
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		return n + 1
	}
	return len(b)
}
