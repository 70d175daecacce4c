package lines

import (
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"sync/atomic"
)

func compile(p Pattern) (*Matcher, error) {
	if len(p.Expr) > MaxPattern {
		return nil, fmt.Errorf("pattern: %d bytes are over the limit of %d", len(p.Expr), MaxPattern)
	}
	expr := p.Expr
	if p.Literal {
		expr = regexp.QuoteMeta(expr)
	} else if classes(expr) > MaxProgram {
		return nil, tooLarge()
	}
	flags, prefix := flags(p)
	tree, err := syntax.Parse(expr, flags)
	if err != nil {
		return nil, complain(expr, flags, err)
	}
	weight := program(tree)
	if weight > MaxProgram {
		return nil, tooLarge()
	}
	m := &Matcher{weight: weight + 1, cr: namesCR(tree), bounds: usual, spent: new(atomic.Bool)}
	crossing := holdsLineEnd(tree)
	if crossing && !p.Multiline {
		return nil, fmt.Errorf("pattern: %w", ErrLineEnd)
	}
	// Where no match can reach over a line end, a line at a time gives the same answer faster.
	m.multi = p.Multiline && (mayHoldLineEnd(tree) || anchored(tree))
	if m.re, err = regexp.Compile(prefix + expr); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	if m.multi {
		if err := m.compileMultiline(tree); err != nil {
			return nil, err
		}
	}
	m.auto = sync.OnceValue(func() *automaton {
		a := newAutomaton(tree, !m.cr)
		if a != nil {
			a.off = m.spent
		}
		return a
	})
	m.needles, m.sure, m.near, m.head = required(tree.Simplify(), how{multi: m.multi, crlf: m.multi && !m.cr})
	if !m.multi {
		m.vectors = vectors(m.needles)
		m.head = m.head && len(m.needles) == 1 // of several, what is found first need not stand first
	}
	return m, nil
}

// flags are the parser's, and the same as a prefix of the pattern.
func flags(p Pattern) (syntax.Flags, string) {
	switch {
	case p.IgnoreCase && p.Multiline:
		return (syntax.Perl | syntax.FoldCase) &^ syntax.OneLine, "(?im)"
	case p.IgnoreCase:
		return syntax.Perl | syntax.FoldCase, "(?i)"
	case p.Multiline:
		return syntax.Perl &^ syntax.OneLine, "(?m)"
	}
	return syntax.Perl, ""
}

func tooLarge() error {
	return fmt.Errorf("pattern: it is too large: more than %d instructions; use fewer or smaller repeat counts", MaxProgram)
}

// classes counts the places that name a Unicode class: each costs the parser up
// to 6 KB, before the size of the program can be known.
func classes(expr string) int { return strings.Count(expr, `\p`) + strings.Count(expr, `\P`) }

// compileMultiline makes the two forms of the pattern that go on from inside a
// text, which regexp cannot do by itself:
//
//	rest  from the start of a later line: the same, but \A never holds
//	tail  from one rune before a place: the first match that starts between that place and the line's end
func (m *Matcher) compileMultiline(tree *syntax.Regexp) (err error) {
	inner := withoutTextStart(tree).String()
	if m.rest, err = regexp.Compile(inner); err == nil {
		m.tail, err = regexp.Compile(`\A(?s:.)[^\n]*?(` + inner + `)`)
	}
	if err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}

// program is the number of instructions the pattern compiles to, but for a few at its ends; over
// MaxProgram it is only known to be over. It is taken before compiling, which would cost up to 128 MB.
func program(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		if n += program(sub); n > MaxProgram {
			return MaxProgram + 1
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpRepeat:
		if re.Max < 0 {
			n = max(re.Min, 1)*n + 1
		} else {
			n = re.Max*n + re.Max - re.Min
		}
	case syntax.OpConcat:
	case syntax.OpCapture:
		n += 2
	case syntax.OpAlternate:
		n += len(re.Sub) - 1
	default:
		n++
	}
	return min(n, MaxProgram+1)
}

// holdsLineEnd says whether the pattern spells out a \n.
func holdsLineEnd(re *syntax.Regexp) bool {
	return has(re, func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpLiteral && strings.ContainsRune(string(re.Rune), '\n')
	})
}

// mayHoldLineEnd says whether a match may hold a \n.
func mayHoldLineEnd(re *syntax.Regexp) bool {
	return has(re, func(re *syntax.Regexp) bool {
		switch re.Op {
		case syntax.OpLiteral:
			return strings.ContainsRune(string(re.Rune), '\n')
		case syntax.OpCharClass:
			return inClass(re.Rune, '\n')
		case syntax.OpAnyChar:
			return true
		}
		return false
	})
}

// anchored says whether the pattern speaks of the start or end of the text.
func anchored(re *syntax.Regexp) bool {
	return has(re, func(re *syntax.Regexp) bool { return re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText })
}

// namesCR says whether the pattern speaks of \r itself, alone or in a small
// class, and not only by \s, a negated class or the like.
func namesCR(re *syntax.Regexp) bool {
	return has(re, func(re *syntax.Regexp) bool {
		switch re.Op {
		case syntax.OpLiteral:
			return strings.ContainsRune(string(re.Rune), '\r')
		case syntax.OpCharClass:
			return inClass(re.Rune, '\r') && !inClass(re.Rune, ' ')
		}
		return false
	})
}

func has(re *syntax.Regexp, is func(*syntax.Regexp) bool) bool {
	if is(re) {
		return true
	}
	for _, sub := range re.Sub {
		if has(sub, is) {
			return true
		}
	}
	return false
}

func inClass(ranges []rune, r rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

func withoutTextStart(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpBeginText {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		out.Sub[i] = withoutTextStart(sub)
	}
	return &out
}

// dear is the work (instructions × bytes) from which a search must look at the
// context on its way: about a tenth of a second.
const dear = 8 << 20

func (m *Matcher) find(ctx context.Context, line []byte) (start, end int, ok bool, err error) {
	var loc []int
	if m.weight*len(line) <= dear {
		loc = m.re.FindIndex(line)
	} else {
		loc = m.re.FindReaderIndex(&memory{ctx: ctx, b: line})
		if err := ctx.Err(); err != nil {
			return 0, 0, false, err
		}
	}
	if loc == nil {
		return 0, 0, false, nil
	}
	return loc[0], loc[1], true, nil
}
