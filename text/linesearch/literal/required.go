package literal

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Above these limits, searching for the needles costs more than it saves.
const (
	maxNeedles = 16 // maximum number of needles in a set
	maxExact   = 32 // maximum number of texts in facts.exact
	maxWords   = 64 // the same, and that of needles, for a list of words and vectors
)

// Requirement describes what each match of a pattern must contain.
type Requirement struct {
	Needles []Needle // each match holds at least one of them; empty if nothing is known
	Suffice bool     // each line that holds a needle matches
	Near    bool     // no newline can occur in a match before its first needle
	Prefix  bool     // each match starts with a needle and does not depend on the bytes before it
}

// Required derives the needles of a simplified pattern. multi means that matches may span lines. crlf means that a \n
// of the pattern also matches \r\n, so no needle may contain a \n.
func Required(re *syntax.Regexp, multi, crlf bool) Requirement {
	f := analyzer{multi, crlf, maxExact}.analyze(re)
	if full := f.fullSet(); f.sure && full.useful() {
		return Requirement{full.needles, true, !full.afterNewline, true}
	}
	best := f.best()
	alone := len(best.needles) == 1 && !best.needles[0].Fold // the caller can count it
	if !best.useful() || !alone && slices.ContainsFunc(best.needles, Needle.common) {
		return Requirement{}
	}
	return Requirement{best.needles, false, !best.afterNewline, best.head}
}

// RequiredWords is [Required] for a list of words in lines. It returns up to 64 words if vectors can find them.
func RequiredWords(re *syntax.Regexp) Requirement {
	f := analyzer{false, false, maxWords}.analyze(re)
	if words := needles(f.exact); len(words) > maxNeedles && newTeddy(words) != nil {
		return Requirement{Needles: words, Suffice: f.sure, Near: true}
	}
	return Required(re, false, false)
}

// analyzer walks a pattern's syntax tree; its first fields are the arguments of [Required].
type analyzer struct {
	multi, crlf bool
	maxExact    int // maximum number of texts in facts.exact
}

// facts describes the texts that a subexpression matches.
type facts struct {
	exact []string  // all texts the subexpression can match; nil if unknown
	whole needleSet // if exact is nil: needles that match exactly the same texts; empty if unknown
	need  needleSet // each match holds one of these needles
	sure  bool      // no assertions: each text of exact or whole is a match
}

// fullSet returns needles that match exactly the texts the subexpression matches; empty if unknown.
func (f facts) fullSet() needleSet {
	if f.exact != nil {
		return needleSet{needles: needles(f.exact)}
	}
	return f.whole
}

// best returns the set with the higher score of need and the full set.
func (f facts) best() needleSet { return better(f.need, f.fullSet()) }

// needleSet is a set of needles; each match holds at least one of them.
type needleSet struct {
	needles      []Needle
	afterNewline bool // a match may hold a \n before the needle
	head         bool // the match starts with the needle and does not depend on the bytes before it
}

// useful reports whether the set is known, not too large, and has no empty needle.
func (s needleSet) useful() bool {
	return len(s.needles) > 0 && len(s.needles) <= maxNeedles &&
		!slices.ContainsFunc(s.needles, func(n Needle) bool { return n.Text == "" })
}

// score rates a set: longer, rarer and fewer needles score higher; an unusable set scores 0.
func (s needleSet) score() int {
	if !s.useful() {
		return 0
	}
	worst := 1 << 20
	for _, n := range s.needles {
		worst = min(worst, min(len(n.Text), 6)*40-Frequency(n.Text[n.rare]))
	}
	if s.afterNewline { // the regexp must also read everything before the needle
		worst -= 200
	}
	return max(400+worst-8*len(s.needles), 1)
}

// better returns the set with the higher score.
func better(a, b needleSet) needleSet {
	if b.score() > a.score() {
		return b
	}
	return a
}

// common reports whether the needle is a single byte that occurs in most lines of most texts. Running the automaton
// over the whole text is then faster than checking each line that holds the needle.
func (n Needle) common() bool { return len(n.Text) == 1 && Frequency(n.Text[0]) >= Frequency('Z') }

// needles returns a case-sensitive needle for each text.
func needles(texts []string) []Needle { return NewNeedles(texts, false) }

// NewNeedles returns a needle for each text, which must be in lower case if fold is set.
func NewNeedles(texts []string, fold bool) (ns []Needle) {
	for _, t := range texts {
		ns = append(ns, newNeedle(t, fold))
	}
	return ns
}

func (h analyzer) analyze(re *syntax.Regexp) facts {
	switch re.Op {
	case syntax.OpLiteral:
		return h.analyzeLiteral(re)
	case syntax.OpCharClass:
		return h.analyzeClass(re)
	case syntax.OpEmptyMatch:
		return facts{exact: []string{""}, sure: true}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		return facts{exact: []string{""}}
	case syntax.OpCapture:
		return h.analyze(re.Sub[0])
	case syntax.OpQuest:
		f := h.analyze(re.Sub[0])
		if f.exact == nil {
			return facts{}
		}
		return facts{exact: append(slices.Clone(f.exact), ""), sure: f.sure}
	case syntax.OpPlus:
		return facts{need: h.analyze(re.Sub[0]).best()} // each match holds what one repeat requires
	case syntax.OpRepeat:
		if re.Min > 0 {
			return facts{need: h.analyze(re.Sub[0]).best()}
		}
	case syntax.OpConcat:
		return h.analyzeConcat(re)
	case syntax.OpAlternate:
		return h.analyzeAlternate(re)
	}
	return facts{}
}

// analyzeLiteral splits a literal at runes that are not byte-exact and after each \n, and chooses the best part as
// needle.
func (h analyzer) analyzeLiteral(re *syntax.Regexp) facts {
	fold := re.Flags&syntax.FoldCase != 0
	allExact := true
	var best needleSet
	var part []rune
	afterNewline := false
	flush := func() {
		if len(part) > 0 {
			best = better(best, needleSet{needles: []Needle{newNeedle(string(part), fold)}, afterNewline: afterNewline})
			part = nil
		}
	}
	for _, r := range re.Rune {
		if h.byteExact(r, fold) {
			if fold {
				r = unicode.ToLower(r)
			}
			part = append(part, r)
		} else {
			allExact = false
			flush()
		}
		if r == '\n' {
			flush()
			afterNewline = true
		}
	}
	flush()
	switch {
	case !allExact, fold && afterNewline: // no needle covers the whole literal
		return facts{need: best}
	case fold:
		best.head = true
		return facts{whole: best, need: best, sure: true}
	}
	return facts{exact: []string{string(re.Rune)}, need: best, sure: true}
}

// byteExact reports whether a rune of the pattern matches only its own UTF-8 bytes (with fold, also those of its
// other ASCII case). U+FFFD is not byte-exact: it also matches any invalid byte.
func (h analyzer) byteExact(r rune, fold bool) bool {
	if r == utf8.RuneError || h.crlf && r == '\n' {
		return false
	}
	return !fold || r < utf8.RuneSelf && !strings.ContainsRune("kKsS", r)
}

// analyzeClass returns the runes of a class as exact texts if it has at most 8 runes.
func (h analyzer) analyzeClass(re *syntax.Regexp) facts {
	var exact []string
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(exact) == 8 || !h.byteExact(r, false) || r == '\n' {
				return facts{}
			}
			exact = append(exact, string(r))
		}
	}
	return facts{exact: exact, sure: exact != nil}
}

// analyzeAlternate merges the facts of all alternatives.
func (h analyzer) analyzeAlternate(re *syntax.Regexp) facts {
	all := facts{sure: true, exact: []string{}}
	for _, sub := range re.Sub {
		f := h.analyze(sub)
		all.sure = all.sure && f.sure
		if f.exact == nil {
			all.exact = nil
		} else if all.exact != nil {
			all.exact = append(all.exact, f.exact...)
		}
		all.whole = all.whole.union(f.fullSet())
		all.need = all.need.union(f.best())
		if len(all.exact) > h.maxExact {
			all.exact = nil
		}
	}
	return all
}

// union returns the needles of both sets as one set; it is unusable if either set is.
func (s needleSet) union(t needleSet) needleSet {
	if !t.useful() {
		t.needles = []Needle{{}}
	}
	if len(s.needles) > maxNeedles {
		return s
	}
	return needleSet{needles: append(slices.Clip(s.needles), t.needles...), afterNewline: s.afterNewline || t.afterNewline}
}

// analyzeConcat multiplies the exact texts of adjacent subexpressions, and chooses the best set of needles.
func (h analyzer) analyzeConcat(re *syntax.Regexp) facts {
	var (
		best needleSet
		acc  = []string{""} // all texts of the subexpressions since the last unknown one
		all  = true         // acc covers all subexpressions so far
		head = true         // no assertion was added to acc
		sure = true         // there was no assertion at all

		afterNewline bool // a match may hold a \n before acc
	)
	flush := func() {
		best = better(best, needleSet{needles: needles(acc), afterNewline: afterNewline, head: all && head})
	}
	for _, sub := range re.Sub {
		f := h.analyze(sub)
		sure = sure && f.sure
		if f.exact != nil && len(acc)*len(f.exact) <= h.maxExact {
			acc = product(acc, f.exact)
			head = head && f.sure
			continue
		}
		flush()
		afterNewline = afterNewline || slices.ContainsFunc(acc, func(s string) bool { return strings.Contains(s, "\n") })
		need := f.best()
		need.afterNewline = need.afterNewline || afterNewline
		need.head = need.head && all && head && len(acc) == 1 && acc[0] == ""
		best = better(best, need)
		afterNewline = afterNewline || h.multi && CanMatchNewline(sub)
		acc, all = []string{""}, false
	}
	flush()
	if !all {
		return facts{need: best}
	}
	return facts{exact: acc, need: best, sure: sure}
}

// product returns each text of as followed by each text of bs.
func product(as, bs []string) []string {
	out := make([]string, 0, len(as)*len(bs))
	for _, a := range as {
		for _, b := range bs {
			out = append(out, a+b)
		}
	}
	return out
}

// CanMatchNewline reports whether a match of the pattern may hold a \n.
func CanMatchNewline(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		return InClass(re.Rune, '\n')
	case syntax.OpAnyChar:
		return true
	}
	return slices.ContainsFunc(re.Sub, CanMatchNewline)
}

// InClass reports whether r is in one of the ranges of a character class.
func InClass(ranges []rune, r rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}
