package lines

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Bounds of the search for needles: more of them cost more than they save.
const (
	maxNeedles = 16
	maxExact   = 32
)

// required finds texts of which every match holds at least one. sure says that
// a line that holds one matches; near that no \n can stand in a match before it; head that every match begins with one.
func required(re *syntax.Regexp, h how) (ns []needle, sure, near, head bool) {
	f := h.look(re)
	if w := f.equal(); f.sure && w.useful() {
		return w.needles, true, !w.far, true
	}
	best := better(f.need, f.equal())
	if !best.useful() {
		return nil, false, false, false
	}
	return best.needles, false, !best.far, best.head
}

// how the pattern is to be read.
type how struct {
	multi bool // matches may reach over line ends
	crlf  bool // a \n of the pattern may be two bytes of the text, so that no needle may reach over one
}

// found is what is known of a piece of a pattern.
type found struct {
	exact []string // all the texts it can match; nil: not known
	whole set      // where exact is not known: it matches these and nothing else
	need  set      // any match holds one of these
	sure  bool     // no assertion stands in it, so that a text of exact or whole is a match
}

// equal is the set that the piece is, or an empty one.
func (f found) equal() set {
	if f.exact != nil {
		return set{needles: needles(f.exact)}
	}
	return f.whole
}

// set is several needles, one of which is there.
type set struct {
	needles []needle
	far     bool // a \n may stand in the match before the needle
	head    bool // the match begins with the needle, and says nothing of what stands before it
}

func (s set) useful() bool {
	return len(s.needles) > 0 && len(s.needles) <= maxNeedles &&
		!slices.ContainsFunc(s.needles, func(n needle) bool { return n.text == "" })
}

// score is higher for longer, rarer and fewer needles.
func (s set) score() int {
	if !s.useful() {
		return 0
	}
	worst := 1 << 20
	for _, n := range s.needles {
		worst = min(worst, min(len(n.text), 6)*40-common(n.text[n.rare]))
	}
	if s.far { // no place to begin from: the regexp must read all that stands before it
		worst -= 200
	}
	return max(400+worst-8*len(s.needles), 1)
}

func better(a, b set) set {
	if b.score() > a.score() {
		return b
	}
	return a
}

func needles(texts []string) []needle {
	var ns []needle
	for _, t := range texts {
		ns = append(ns, newNeedle(t, false))
	}
	return ns
}

func (h how) look(re *syntax.Regexp) found {
	switch re.Op {
	case syntax.OpLiteral:
		return h.lookLiteral(re)
	case syntax.OpCharClass:
		return h.lookClass(re)
	case syntax.OpEmptyMatch:
		return found{exact: []string{""}, sure: true}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return found{exact: []string{""}}
	case syntax.OpCapture:
		return h.look(re.Sub[0])
	case syntax.OpQuest:
		f := h.look(re.Sub[0])
		if f.exact == nil {
			return found{}
		}
		return found{exact: append(slices.Clone(f.exact), ""), sure: f.sure}
	case syntax.OpPlus:
		return repeated(h.look(re.Sub[0]))
	case syntax.OpRepeat:
		if re.Min > 0 {
			return repeated(h.look(re.Sub[0]))
		}
	case syntax.OpConcat:
		return h.lookConcat(re)
	case syntax.OpAlternate:
		return h.lookAlternate(re)
	}
	return found{}
}

// repeated is one of the piece or more: what one needs is needed.
func repeated(f found) found { return found{need: better(f.need, f.equal())} }

func (h how) lookLiteral(re *syntax.Regexp) found {
	fold := re.Flags&syntax.FoldCase != 0
	plain := true
	var best set
	var piece []rune
	far := false
	flush := func() {
		if len(piece) > 0 {
			best = better(best, set{needles: []needle{newNeedle(string(piece), fold)}, far: far})
			piece = nil
		}
	}
	for _, r := range re.Rune {
		if h.literal(r, fold) {
			if fold {
				r = unicode.ToLower(r)
			}
			piece = append(piece, r)
		} else {
			plain = false
			flush()
		}
		if r == '\n' {
			flush()
			far = true
		}
	}
	flush()
	switch {
	case !plain:
		return found{need: best}
	case fold && far: // a \n split it
		return found{need: best}
	case fold:
		best.head = true
		return found{whole: best, need: best, sure: true}
	default:
		return found{exact: []string{string(re.Rune)}, need: best, sure: true}
	}
}

// literal says whether a rune of the pattern stands in the text only as its own bytes (or, with fold, those of its
// other ASCII case). U+FFFD also matches any invalid byte.
func (h how) literal(r rune, fold bool) bool {
	switch {
	case r == utf8.RuneError, h.crlf && r == '\n':
		return false
	case fold:
		return r < utf8.RuneSelf && r != 'k' && r != 'K' && r != 's' && r != 'S'
	}
	return true
}

// lookClass spells out a small class.
func (h how) lookClass(re *syntax.Regexp) found {
	var exact []string
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(exact) == 8 || !h.literal(r, false) || r == '\n' {
				return found{}
			}
			exact = append(exact, string(r))
		}
	}
	return found{exact: exact, sure: exact != nil}
}

func (h how) lookAlternate(re *syntax.Regexp) found {
	all := found{sure: true, exact: []string{}}
	for _, sub := range re.Sub {
		f := h.look(sub)
		all.sure = all.sure && f.sure
		if f.exact == nil {
			all.exact = nil
		} else if all.exact != nil {
			all.exact = append(all.exact, f.exact...)
		}
		all.whole = all.whole.or(f.equal())
		all.need = all.need.or(better(f.need, f.equal()))
		if len(all.exact) > maxExact {
			all.exact = nil
		}
	}
	return all
}

// or is the union; where one side needs nothing, it needs nothing.
func (s set) or(t set) set {
	if !t.useful() {
		t.needles = []needle{{}}
	}
	if len(s.needles) > maxNeedles {
		return s
	}
	return set{needles: append(slices.Clip(s.needles), t.needles...), far: s.far || t.far}
}

func (h how) lookConcat(re *syntax.Regexp) found {
	var (
		best set
		acc  = []string{""} // what the pieces since the last unknown one can match together
		far  bool           // a \n may stand before acc
		all  = true         // acc has held everything so far
		bare = true         // … and no assertion
		sure = true
	)
	flush := func() { best = better(best, set{needles: needles(acc), far: far, head: all && bare}) }
	for _, sub := range re.Sub {
		f := h.look(sub)
		sure = sure && f.sure
		if f.exact != nil && len(acc)*len(f.exact) <= maxExact {
			acc = product(acc, f.exact)
			bare = bare && f.sure
			continue
		}
		flush()
		far = far || slices.ContainsFunc(acc, func(s string) bool { return slices.Contains([]byte(s), '\n') })
		need := better(f.need, f.equal())
		need.far = need.far || far
		need.head = need.head && all && bare && len(acc) == 1 && acc[0] == ""
		best = better(best, need)
		far = far || h.multi && mayHoldLineEnd(sub)
		acc, all = []string{""}, false
	}
	flush()
	if !all {
		return found{need: best}
	}
	return found{exact: acc, need: best, sure: sure}
}

func product(as, bs []string) []string {
	out := make([]string, 0, len(as)*len(bs))
	for _, a := range as {
		for _, b := range bs {
			out = append(out, a+b)
		}
	}
	return out
}
