package tree

import (
	"bytes"
	"strings"
)

// Limits of ignore files, in bytes: of one, and of all that apply to one directory. git reads up to 100 MB of each,
// which a hostile tree could make us hold.
const (
	MaxRules      = 1 << 20
	maxRulesInAll = 4 << 20
)

// rules are the rules of one ignore file, compiled, and of those above it. The last matching line decides, so each line
// has a rank: literal names and extensions are looked up, and only lines of a higher rank are matched one by one.
type rules struct {
	above *rules
	base  int // length of the path of the file's directory below the root, with "/"
	held  int // bytes of this file and of those above

	names map[string]ranks // by base name
	paths map[string]ranks // by path below base
	exts  map[string]ranks // ".go" for "*.go": from the last dot of the name
	rest  []rule           // highest rank first
}

// rank is 0 for no line, else 2 × (line + 1), plus 1 if the line begins with "!".
type rank int32

func (k rank) ignores() bool { return k != 0 && k&1 == 0 }

// ranks are the highest ranks of lines for any entry, and of lines for directories only.
type ranks struct{ any, dir rank }

// best returns the highest rank that applies.
func (k ranks) best(dir bool) rank {
	if dir {
		return max(k.any, k.dir)
	}
	return k.any
}

// rule is a line that must be matched.
type rule struct {
	rank    rank
	how     byte
	dir     bool   // directories only
	needs   pairs  // pairs in the base name of every match
	literal string // end of the name, or beginning of the name or path
	wild    string
	tail    string // end of everything that matches wild
}

const (
	suffix   = iota // the name ends with literal
	wildName        // the name begins with literal, and the rest matches wild
	wildPath        // the path below base begins with literal, and the rest matches wild
)

// compile parses an ignore file in directory path[:base]. It returns above if no line can match anything.
func compile(text []byte, base int, above *rules) *rules {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	s := &rules{above: above, base: base, held: len(text)}
	if above != nil {
		s.held += above.held
	}
	// All literals and patterns are substrings of one copy of the text.
	for n, lines := 0, string(text); lines != ""; n++ {
		var line string
		line, lines, _ = strings.Cut(lines, "\n")
		s.add(rank(n+1)<<1, line)
	}
	if s.names == nil && s.paths == nil && s.exts == nil && s.rest == nil {
		return above
	}
	for i, j := 0, len(s.rest)-1; i < j; i, j = i+1, j-1 {
		s.rest[i], s.rest[j] = s.rest[j], s.rest[i]
	}
	return s
}

// add parses one line, given without its newline.
func (s *rules) add(k rank, line string) {
	if strings.HasPrefix(line, "#") {
		return
	}
	line = strings.TrimSuffix(line, "\r")
	if nul := strings.IndexByte(line, 0); nul >= 0 {
		line = line[:nul] // git uses C strings
	}
	line = trimBlanks(line)
	if strings.HasPrefix(line, "!") {
		line, k = line[1:], k|1
	}
	line, dir := strings.CutSuffix(line, "/")
	if line == "" || neverMatches(line) {
		return
	}
	if !strings.Contains(line, "/") {
		s.addName(k, line, dir)
		return
	}
	line = strings.TrimPrefix(line, "/")
	if last, ok := strings.CutPrefix(line, "**/"); ok && last != "" && !strings.Contains(last, "/") {
		s.addName(k, last, dir) // at any depth, like a name without slashes
		return
	}
	switch at := strings.IndexAny(line, `*?[\`); {
	case at < 0:
		putRank(&s.paths, line, k, dir)
	default:
		s.rest = append(s.rest, wildRule(k, wildPath, dir, line, at))
	}
}

func (s *rules) addName(k rank, line string, dir bool) {
	at := strings.IndexAny(line, `*?[\`)
	switch {
	case at < 0:
		putRank(&s.names, line, k, dir)
	case at > 0 || line[0] != '*' || strings.ContainsAny(line[1:], `*?[\`):
		s.rest = append(s.rest, wildRule(k, wildName, dir, line, at))
	case strings.LastIndexByte(line, '.') == 1 && len(line) > 2:
		putRank(&s.exts, line[1:], k, dir)
	default:
		s.rest = append(s.rest, rule{rank: k, how: suffix, dir: dir, needs: requiredPairs(line), literal: line[1:]})
	}
}

// wildRule returns the rule for a line whose first special character is at an offset.
func wildRule(k rank, how byte, dir bool, line string, at int) rule {
	return rule{
		rank: k, how: how, dir: dir, needs: requiredPairs(line),
		literal: line[:at], wild: line[at:], tail: literalTail(line),
	}
}

// literalTail returns the literal text at the end of a pattern that is not [neverMatches]. Every match ends with it. It
// starts after the last "/", because "**/" may match nothing.
func literalTail(pattern string) string { return pattern[strings.LastIndexAny(pattern, `*?[]\/`)+1:] }

func putRank(m *map[string]ranks, key string, k rank, dir bool) {
	if *m == nil {
		*m = make(map[string]ranks)
	}
	at := (*m)[key]
	if dir {
		at.dir = k
	} else {
		at.any = k
	}
	(*m)[key] = at
}

// trimBlanks removes trailing blanks, but not one after a "\".
func trimBlanks(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			if i++; i == len(line) {
				return line
			}
			end = i + 1
		} else if line[i] != ' ' {
			end = i + 1
		}
	}
	return line[:end]
}

// ignores reports whether a path below the root with this base name is ignored. The nearest ignore file with a matching
// line decides. The caller must check the directories above it.
func (s *rules) ignores(path, name string, dir bool) bool {
	if s == nil {
		return false
	}
	has := pairsOf(name)
	for ; s != nil; s = s.above {
		if k := s.lastMatch(path[s.base:], name, has, dir); k != 0 {
			return k.ignores()
		}
	}
	return false
}

// lastMatch returns the rank of the last line that matches, 0 if none does.
func (s *rules) lastMatch(path, name string, has pairs, dir bool) rank {
	k := s.names[name].best(dir)
	if s.paths != nil {
		k = max(k, s.paths[path].best(dir))
	}
	if s.exts != nil {
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			k = max(k, s.exts[name[dot:]].best(dir))
		}
	}
	for i := range s.rest {
		r := &s.rest[i]
		if r.rank < k {
			return k
		}
		if r.needs&^has == 0 && (dir || !r.dir) && r.matches(path, name) {
			return r.rank
		}
	}
	return k
}

func (r *rule) matches(path, name string) bool {
	switch r.how {
	case suffix:
		return strings.HasSuffix(name, r.literal)
	case wildName:
		path = name
	}
	return strings.HasSuffix(path, r.tail) && strings.HasPrefix(path, r.literal) &&
		wildmatch(r.wild, path[len(r.literal):])
}
