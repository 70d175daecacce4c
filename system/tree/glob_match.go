package tree

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// op is one step of a compiled pattern: opStar and so on, or opRune with the pattern of the runes that it matches.
type op struct {
	kind          byte
	one           string // of opRune: "a", `\*`, "?" or "[a-z]"
	pattern, name int32  // indexes of their first ops
}

const (
	opRune = iota
	opStar // "*"
	opSlash
	opDeep // "**" as a whole name, and the "/" after it
	opEnd
)

// globState is the set of steps that the patterns have reached after part of a path: a walk matches each name once,
// however many patterns there are. It does not change, apart from next.
type globState struct {
	at      []int32      // indexes of ops, the largest first
	matches bool         // a path that ends here matches, unless it is excluded
	exclude bool         // a path that ends here is excluded, with all that is below it
	next    []*globState // by rune, as far as known; of runes beyond ASCII only if no pattern tells them apart
}

// everything is the state without a glob.
var everything = &globState{matches: true}

// globMemory bounds the states that a glob keeps, in bytes; further ones are computed each time.
const globMemory = 4 << 20

// begin returns the state before all names.
func (g *Glob) begin() *globState {
	if g == nil {
		return everything
	}
	g.once.Do(func() {
		at := g.compile(nil, g.alternatives)
		g.firstExcept = int32(len(g.ops))
		g.states = map[string]*globState{}
		g.start = g.state(g.compile(at, g.except))
	})
	return g.start
}

// compile writes patterns as ops and adds the first ones to a set.
func (g *Glob) compile(at []int32, patterns [][]string) []int32 {
	for _, parts := range patterns {
		begin := int32(len(g.ops))
		for i, part := range parts {
			if i > 0 && parts[i-1] != "**" {
				g.ops = append(g.ops, op{kind: opSlash, pattern: begin})
			}
			g.compilePart(part, begin)
		}
		g.ops = append(g.ops, op{kind: opEnd, pattern: begin})
		at = g.addName(at, begin)
	}
	return at
}

// compilePart writes one name of a pattern.
func (g *Glob) compilePart(part string, pattern int32) {
	if part == "**" {
		g.ops = append(g.ops, op{kind: opDeep, pattern: pattern})
		return
	}
	for name := int32(len(g.ops)); len(part) > 0; {
		next, size := op{pattern: pattern, name: name}, 1
		switch part[0] {
		case '*':
			next.kind = opStar
		case '[':
			size = closing(part, 0) + 1
		case '\\':
			_, size = utf8.DecodeRuneInString(part[1:])
			size++
		default:
			_, size = utf8.DecodeRuneInString(part)
		}
		next.one, part = part[:size], part[size:]
		g.wide = g.wide || next.one[0] == '[' || next.one[size-1] >= utf8.RuneSelf
		g.ops = append(g.ops, next)
	}
}

// addOp adds an op to a set, and those after it that need no rune.
func (g *Glob) addOp(at []int32, i int32) []int32 {
	for ; g.ops[i].kind == opStar; i++ {
		at = append(at, i)
	}
	return append(at, i)
}

// addName is addOp at the start of a name, which "**" may leave to what follows it.
func (g *Glob) addName(at []int32, i int32) []int32 {
	if g.ops[i].kind == opDeep {
		at, i = append(at, i), i+1
	}
	return g.addOp(at, i)
}

// state returns the state of a set of ops. Of a pattern, only the latest "**" must be tried again, and of a name the
// latest "*": they also match all that the ops before them could.
func (g *Glob) state(at []int32) *globState {
	slices.SortFunc(at, func(a, b int32) int { return int(b - a) })
	deep, star := int32(-1), int32(-1)
	at = slices.DeleteFunc(slices.Compact(at), func(i int32) bool {
		o := &g.ops[i]
		if o.pattern == deep || o.kind < opSlash && o.name == star {
			return true
		}
		switch o.kind {
		case opDeep:
			deep = o.pattern
		case opStar:
			star = o.name
		}
		return false
	})
	key, _ := binary.Append(nil, binary.NativeEndian, at) // fails for other types only
	if s := g.states[string(key)]; s != nil {
		return s
	}
	s := &globState{at: at}
	for _, i := range at {
		end := i
		for g.ops[end].kind == opDeep || g.ops[end].kind == opSlash && g.ops[end+1].kind == opDeep {
			end++ // "a/**" matches a too
		}
		if g.ops[end].kind == opEnd {
			s.matches, s.exclude = s.matches || i < g.firstExcept, s.exclude || i >= g.firstExcept
		}
	}
	if size := 3*len(key) + 8*utf8.RuneSelf + 200; g.used+size <= globMemory {
		g.used += size
		s.next = make([]*globState, utf8.RuneSelf+1)
		g.states[string(key)] = s
	}
	return s
}

// step returns the state after one rune.
func (g *Glob) step(s *globState, r rune) *globState {
	index, cached := min(r, utf8.RuneSelf), s.next != nil && (r < utf8.RuneSelf || !g.wide)
	if cached && s.next[index] != nil {
		return s.next[index]
	}
	var at []int32
	for _, i := range s.at {
		switch o := &g.ops[i]; {
		case r == '/' && o.kind == opSlash:
			at = g.addName(at, i+1)
		case r == '/' && o.kind == opDeep:
			at = g.addName(at, i)
		case r == '/':
		case o.kind == opDeep:
			at = append(at, i)
		case o.kind == opStar:
			at = g.addOp(at, i)
		case o.kind == opRune && doublestar.MatchUnvalidated(o.one, string(r)):
			at = g.addOp(at, i+1)
		}
	}
	after := g.state(at)
	if cached {
		s.next[index] = after
	}
	return after
}

// after returns the state after a name that follows s, or after a "/".
func (g *Glob) after(s *globState, name string) *globState {
	if s == everything {
		return s
	}
	if g.wide {
		name = norm.NFC.String(name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range name { // a byte that is not UTF-8 is U+FFFD, as in doublestar
		s = g.step(s, r)
	}
	return s
}

// below returns the state before the names in a directory, whose state is s; nil if nothing in it can match.
func (g *Glob) below(s *globState) *globState {
	if s == everything {
		return s
	}
	if below := g.after(s, "/"); !s.exclude && len(below.at) > 0 && below.at[len(below.at)-1] < g.firstExcept {
		return below
	}
	return nil
}

// Match reports whether a slash path matches.
func (g *Glob) Match(p string) bool {
	name, rest, more := strings.Cut(p, "/")
	s := g.after(g.begin(), name)
	for more {
		if s = g.below(s); s == nil {
			return false
		}
		name, rest, more = strings.Cut(rest, "/")
		s = g.after(s, name)
	}
	return s.matches && !s.exclude
}
