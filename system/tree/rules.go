package tree

import (
	"bytes"
	"slices"
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

	names lines  // by base name
	paths lines  // by path below base
	exts  lines  // ".go" for "*.go": from the last dot of the name
	rest  []rule // highest rank first
}

// rank is 0 for no line, else 2 × (line + 1), plus 1 if the line begins with "!".
type rank int32

func (k rank) ignores() bool { return k != 0 && k&1 == 0 }

// lines have the rank of the last line for each literal; that of a line for directories only ends with "/".
type lines map[string]rank

// last returns the rank of the last line that applies.
func (l lines) last(literal string, dir bool) rank {
	if dir && len(l) > 0 {
		return max(l[literal], l[literal+"/"])
	}
	return l[literal]
}

// rule is a line that must be matched.
type rule struct {
	rank    rank
	byName  bool   // matches the base name, else the path below base
	dir     bool   // matches directories only
	literal string // beginning of every match, up to the first special character
	wild    string // pattern of the rest: as in git, a "**" that follows literal text is at its start
	tail    string // end of every match
}

// compile parses an ignore file in directory path[:base]. It returns above if no line can match anything.
func compile(text []byte, base int, above *rules) *rules {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	s := &rules{above: above, base: base, held: len(text), names: lines{}, paths: lines{}, exts: lines{}}
	if above != nil {
		s.held += above.held
	}
	n := rank(0)
	for line := range strings.SplitSeq(string(text), "\n") {
		n++
		s.add(n<<1, line)
	}
	if len(s.names)+len(s.paths)+len(s.exts)+len(s.rest) == 0 {
		return above
	}
	slices.Reverse(s.rest)
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
	byName := !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if last, ok := strings.CutPrefix(line, "**/"); ok && last != "" && !strings.Contains(last, "/") {
		byName, line = true, last // at any depth, like a name without slashes
	}
	at := strings.IndexAny(line, special)
	literals, key := s.paths, line
	switch {
	case at < 0 && byName:
		literals = s.names
	case byName && at == 0 && strings.HasPrefix(line, "*.") && len(line) > 2 &&
		!strings.ContainsAny(line[2:], special+"."):
		literals, key = s.exts, line[1:]
	case at >= 0:
		s.rest = append(s.rest, rule{k, byName, dir, line[:at], line[at:], literalTail(line)})
		return
	}
	if dir {
		key += "/"
	}
	literals[key] = k
}

// special are the characters with a meaning in a pattern.
const special = `*?[\`

// literalTail returns the literal text at the end of a pattern that is not [neverMatches]. Every match ends with it. It
// starts after the last "/", because "**/" may match nothing.
func literalTail(pattern string) string { return pattern[strings.LastIndexAny(pattern, `*?[]\/`)+1:] }

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
	for ; s != nil; s = s.above {
		if k := s.lastMatch(path[s.base:], name, dir); k != 0 {
			return k.ignores()
		}
	}
	return false
}

// lastMatch returns the rank of the last line that matches, 0 if none does.
func (s *rules) lastMatch(path, name string, dir bool) rank {
	k := max(s.names.last(name, dir), s.paths.last(path, dir))
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		k = max(k, s.exts.last(name[dot:], dir))
	}
	for i := range s.rest {
		r := &s.rest[i]
		if r.rank < k {
			return k
		}
		if (dir || !r.dir) && r.matches(path, name) {
			return r.rank
		}
	}
	return k
}

func (r *rule) matches(path, name string) bool {
	if r.byName {
		path = name
	}
	return strings.HasSuffix(path, r.tail) && strings.HasPrefix(path, r.literal) &&
		wildmatch(r.wild, path[len(r.literal):])
}
