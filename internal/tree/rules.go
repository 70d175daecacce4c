package tree

import (
	"bytes"
	"strings"
)

// Limits of ignore files, in bytes: of one, and of all that bear on one
// directory. git takes 100 MB of each; a hostile tree would have us hold them.
const (
	MaxRules      = 1 << 20
	maxRulesInAll = 4 << 20
)

// rules are one ignore file, compiled, and what stands above it. The last line
// that matches decides; so each line has a rank, literal names and extensions
// are looked up, and only lines of a higher rank are tried one by one.
type rules struct {
	above *rules
	base  int // bytes of a path below the root that lead to the file's directory, with "/"
	held  int // bytes of this file and of those above

	names map[string]ranks // the last name of a path
	paths map[string]ranks // the path below base
	exts  map[string]ranks // ".go" of "*.go": from the last dot of the name
	rest  []rule           // highest rank first
}

// rank is 0 for no line, else 2 × (line + 1), plus 1 where the line begins with "!".
type rank int32

func (k rank) ignores() bool { return k != 0 && k&1 == 0 }

// ranks are the highest of lines for anything, and of those for directories only.
type ranks struct{ any, dir rank }

// best is the highest that applies.
func (k ranks) best(dir bool) rank {
	if dir {
		return max(k.any, k.dir)
	}
	return k.any
}

// rule is a line that must be tried.
type rule struct {
	rank    rank
	how     byte
	dir     bool   // directories only
	needs   pairs  // of the last name of what matches
	literal string // what the name ends with, or what the name or the path begins with
	wild    string
	tail    string // what whatever matches wild ends with
}

const (
	suffix   = iota // the name ends with literal
	wildName        // the name begins with literal, and the rest matches wild
	wildPath        // the path below base begins with literal, and the rest matches wild
)

// compile reads an ignore file whose directory is path[:base]. It returns above
// where no line of it can match anything.
func compile(text []byte, base int, above *rules) *rules {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	s := &rules{above: above, base: base, held: len(text)}
	if above != nil {
		s.held += above.held
	}
	// One copy of the text holds all literals and patterns.
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

// add takes one line without its newline.
func (s *rules) add(k rank, line string) {
	if strings.HasPrefix(line, "#") {
		return
	}
	line = strings.TrimSuffix(line, "\r")
	if nul := strings.IndexByte(line, 0); nul >= 0 {
		line = line[:nul] // git reads C strings
	}
	line = trimBlanks(line)
	if strings.HasPrefix(line, "!") {
		line, k = line[1:], k|1
	}
	line, dir := strings.CutSuffix(line, "/")
	if line == "" || hopeless(line) {
		return
	}
	if !strings.Contains(line, "/") {
		s.addName(k, line, dir)
		return
	}
	line = strings.TrimPrefix(line, "/")
	if last, ok := strings.CutPrefix(line, "**/"); ok && last != "" && !strings.Contains(last, "/") {
		s.addName(k, last, dir) // at any depth, which is what a lone name means
		return
	}
	switch at := strings.IndexAny(line, `*?[\`); {
	case at < 0:
		put(&s.paths, line, k, dir)
	default:
		s.rest = append(s.rest, rule{rank: k, how: wildPath, dir: dir, needs: needs(line), literal: line[:at], wild: line[at:], tail: tail(line)})
	}
}

func (s *rules) addName(k rank, line string, dir bool) {
	at := strings.IndexAny(line, `*?[\`)
	switch {
	case at < 0:
		put(&s.names, line, k, dir)
	case at > 0 || line[0] != '*' || strings.ContainsAny(line[1:], `*?[\`):
		s.rest = append(s.rest, rule{rank: k, how: wildName, dir: dir, needs: needs(line), literal: line[:at], wild: line[at:], tail: tail(line)})
	case strings.LastIndexByte(line, '.') == 1 && len(line) > 2:
		put(&s.exts, line[1:], k, dir)
	default:
		s.rest = append(s.rest, rule{rank: k, how: suffix, dir: dir, needs: needs(line), literal: line[1:]})
	}
}

// tail is the plain text at the end of a pattern that is not [hopeless]: what matches ends with it. It begins after
// the last "/", because "**/" may stand for nothing.
func tail(pattern string) string { return pattern[strings.LastIndexAny(pattern, `*?[]\/`)+1:] }

func put(m *map[string]ranks, key string, k rank, dir bool) {
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

// trimBlanks takes blanks off the end, but not one behind a "\".
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

// ignores says what the rules say of a path below the root whose last name is
// name: the file nearest to it in which a line matches decides. That a directory
// above it is ignored is for the caller to see.
func (s *rules) ignores(path, name string, dir bool) bool {
	if s == nil {
		return false
	}
	has := pairsOf(name)
	for ; s != nil; s = s.above {
		if k := s.find(path[s.base:], name, has, dir); k != 0 {
			return k.ignores()
		}
	}
	return false
}

// find is the rank of the last line that matches.
func (s *rules) find(path, name string, has pairs, dir bool) rank {
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
	return strings.HasSuffix(path, r.tail) && strings.HasPrefix(path, r.literal) && wildmatch(r.wild, path[len(r.literal):])
}
