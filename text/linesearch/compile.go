package linesearch

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// compile is Compile without the cache.
func compile(p Pattern) (*Matcher, error) {
	if len(p.Expr) > MaxPattern {
		return nil, fmt.Errorf("pattern: %d bytes are over the limit of %d", len(p.Expr), MaxPattern)
	}
	expr := p.Expr
	if p.Literal {
		expr = regexp.QuoteMeta(expr)
	} else if strings.Count(expr, `\p`)+strings.Count(expr, `\P`) > MaxProgram {
		return nil, errTooLarge // each Unicode class takes up to 6 KB before the size of the program is known
	}
	flags, prefix := flags(p)
	tree, err := syntax.Parse(expr, flags)
	if err != nil {
		return nil, explainParseError(expr, flags, err)
	}
	m := &Matcher{instructions: estimateProgramSize(tree) + 1, cr: namesCR(tree), ascii: !p.Literal && UsesASCII(p.Expr),
		sizes: defaultSizes, abandoned: new(atomic.Bool)}
	if !p.Multiline && hasNewlineLiteral(tree) {
		return nil, fmt.Errorf("pattern: %w", ErrLineEnd)
	}
	// If no match can span lines, searching line by line gives the same result faster.
	m.multi = p.Multiline && (literal.CanMatchNewline(tree) || hasTextAnchor(tree))
	if m.list = !m.multi && isList(tree); !m.list && m.instructions > MaxProgram+1 {
		return nil, errTooLarge
	}
	m.re = sync.OnceValue(func() *regexp.Regexp {
		if m.list {
			if re, err := regexp.Compile(grouped(tree, 0).String()); err == nil { // else it nests too deeply
				return re
			}
		}
		return regexp.MustCompile(prefix + expr) // it was parsed above
	})
	m.prepare(tree)
	if m.multi {
		if m.rest, err = regexp.Compile(withoutTextStart(tree).String()); err == nil && m.tail() == nil {
			err = &syntax.Error{Code: syntax.ErrNestingDepth, Expr: expr}
		}
		if err != nil {
			return nil, explainParseError(expr, flags, err)
		}
	}
	return m, nil
}

// prepare sets the fields of a Matcher that depend on the syntax tree.
func (m *Matcher) prepare(tree *syntax.Regexp) {
	m.auto = sync.OnceValue(func() *automaton { return newAutomaton(tree, !m.cr, m.list, m.abandoned) })
	m.longest = longestMatch(tree)
	m.tail = sync.OnceValue(func() *regexp.Regexp {
		re, _ := regexp.Compile(`\A(?s:.)[^\n]*?(` + withoutTextStart(tree).String() + `)`)
		return re
	})
	if m.list {
		m.need = wordNeedles(tree)
	} else {
		m.need = literal.Required(tree.Simplify(), m.multi, m.multi && !m.cr)
	}
	if !m.multi {
		m.newSearcher = literal.NewSearcher(m.need.Needles)
		m.need.Prefix = m.need.Prefix && len(m.need.Needles) == 1 // any of several needles may be found first
	}
}

// flags returns the parser's flags, and the same flags as a prefix of the pattern.
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

var errTooLarge = fmt.Errorf("pattern: it is too large: more than %d instructions; use fewer or smaller repeat counts",
	MaxProgram)

// estimateProgramSize returns the number of instructions of the compiled pattern, within 4, but at most MaxPattern. It
// does not compile the pattern, which would take up to 128 MB.
func estimateProgramSize(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n = min(n+estimateProgramSize(sub), MaxPattern)
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
	return min(n, MaxPattern)
}

// maxLongest is the longest match, in bytes, that is distinguished from those of any length.
const maxLongest = 64 << 10

// longestMatch returns how many bytes a match has at most; -1 for any number, or over maxLongest.
func longestMatch(re *syntax.Regexp) int {
	all := 0
	for i, sub := range re.Sub {
		n := longestMatch(sub)
		switch {
		case n < 0:
			return -1
		case re.Op == syntax.OpAlternate && i > 0:
			all = max(all, n)
		default:
			all += n
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		all = utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		all = utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpRepeat:
		if re.Max < 0 {
			return -1
		}
		all *= re.Max
	}
	if all > maxLongest {
		return -1
	}
	return all
}

// hasNewlineLiteral reports whether the pattern has a literal \n.
func hasNewlineLiteral(re *syntax.Regexp) bool {
	return anyNode(re, func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n')
	})
}

// hasTextAnchor reports whether the pattern names the start or end of the text.
func hasTextAnchor(re *syntax.Regexp) bool {
	return anyNode(re, func(re *syntax.Regexp) bool { return re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText })
}

// namesCR reports whether the pattern names \r, alone or in a class that does not contain the space. So \s and most
// negated classes do not count.
func namesCR(re *syntax.Regexp) bool {
	return anyNode(re, func(re *syntax.Regexp) bool {
		switch re.Op {
		case syntax.OpLiteral:
			return slices.Contains(re.Rune, '\r')
		case syntax.OpCharClass:
			return literal.InClass(re.Rune, '\r') && !literal.InClass(re.Rune, ' ')
		}
		return false
	})
}

// anyNode reports whether is returns true for a node of the syntax tree.
func anyNode(re *syntax.Regexp, is func(*syntax.Regexp) bool) bool {
	return is(re) || slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return anyNode(sub, is) })
}

// withoutTextStart returns the pattern with \A replaced by a pattern that never matches.
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

// expensiveWork is the work, in instructions × bytes, above which regexp must check the context while it runs. Less
// work takes at most about a tenth of a second.
const expensiveWork = 8 << 20

// Find reports whether one line (without its line end) matches, and the byte range [start, end) of its first match.
// Find matches a line that contains newlines as one text. It returns an error only if ctx is done.
func (m *Matcher) Find(ctx context.Context, line []byte) (start, end int, ok bool, err error) {
	var loc []int
	if m.instructions*len(line) <= expensiveWork {
		loc = m.re().FindIndex(line)
	} else {
		loc = m.re().FindReaderIndex(&readerAtRunes{ctx: ctx, src: bytes.NewReader(line), end: int64(len(line))})
		if err := ctx.Err(); err != nil {
			return 0, 0, false, err
		}
	}
	if loc == nil {
		return 0, 0, false, nil
	}
	return loc[0], loc[1], true, nil
}

// Compile compiles a pattern, or returns its Matcher from a cache. The error for a pattern that does not parse shows
// the pattern with a caret under the position. A pattern that exceeds [MaxPattern] or [MaxProgram] is also an error.
func Compile(p Pattern) (*Matcher, error) {
	if m, ok := compiled.Get(p); ok && !m.abandoned.Load() {
		return m, nil
	}
	m, err := compile(p)
	if err == nil {
		compiled.Put(p, m, m.size()+len(p.Expr)/instructionSize)
	}
	return m, err
}

// compiled caches Matchers, because the next page and the next call often have the same pattern. Compiling takes about
// 15 µs, and 80 to 150 µs with the automaton, which is made when the first line must be walked (BenchmarkFirstLine, 2
// shared cores of a Xeon). The cache holds at most 8 MB, without walkers: up to maxWalker bytes each, which the garbage
// collector may free when no scan runs.
var compiled = lru.New[Pattern, *Matcher](8 << 20 / instructionSize)

// size returns the size of a Matcher in instructions. Most texts need one of the two programs of a list of words.
func (m *Matcher) size() int {
	if m.list {
		return m.instructions / 2
	}
	return m.instructions
}

// instructionSize is about the number of bytes that a Matcher takes for each of its instructions.
const instructionSize = 256

// Groups calls visit for each match in a line. The tuple is the text of the match or, if the pattern has capturing
// groups, the texts of the groups, separated by tabs. A group that is not part of the match is empty. The tuple is
// valid until visit returns. Call Groups for matching lines only: the regexp package takes about 50 ns for each byte.
func (m *Matcher) Groups(line []byte, visit func(tuple []byte)) {
	var tuple []byte
	for _, at := range m.re().FindAllSubmatchIndex(line, -1) {
		if len(at) == 2 {
			visit(line[at[0]:at[1]])
			continue
		}
		tuple = tuple[:0]
		for i := 2; i < len(at); i += 2 {
			if i > 2 {
				tuple = append(tuple, '\t')
			}
			if at[i] >= 0 {
				tuple = append(tuple, line[at[i]:at[i+1]]...)
			}
		}
		visit(tuple)
	}
}
