package linesearch

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// A list of words is an alternation of literal texts, perhaps with assertions such as ^, $ and \b before or after them.
// It may have more than [MaxProgram] instructions, because its automaton has few states in most texts, and its program
// few threads once the words are grouped.

// Limits of a list of words.
const (
	fewWords = 16  // up to this number of alternatives, a pattern is no list
	maxClass = 128 // number of runes of a class in a list: the parser makes one of single letters
	maxGroup = 100 // depth of groups in groups; the parser allows 1,000
)

// isList reports whether a pattern is a list of words.
func isList(tree *syntax.Regexp) bool { return countWords(tree) > fewWords }

// wordNeedles returns the needles of a list of words.
func wordNeedles(words *syntax.Regexp) literal.Requirement {
	need := literal.RequiredWords(grouped(words, 0).Simplify())
	if len(need.Needles) > 0 {
		return need
	}
	// The words have no beginnings in common. They may have ends, such as .log: these are the beginnings in reverse.
	for _, n := range literal.RequiredWords(grouped(reversed(words), 0).Simplify()).Needles {
		end := []rune(n.Text)
		slices.Reverse(end)
		need.Needles = append(need.Needles, literal.NewNeedles([]string{string(end)}, n.Fold)...)
	}
	return need
}

// reversed returns a pattern for the words of a list in reverse.
func reversed(re *syntax.Regexp) *syntax.Regexp {
	out := *re
	out.Rune, out.Sub = slices.Clone(re.Rune), slices.Clone(re.Sub)
	if re.Op == syntax.OpAlternate {
		out.Sub = flattened(re.Sub)
	}
	for i, sub := range out.Sub {
		out.Sub[i] = reversed(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		slices.Reverse(out.Rune)
	case syntax.OpConcat:
		slices.Reverse(out.Sub)
	}
	return &out
}

// countWords returns the number of alternatives, at most MaxPattern; 0 if the pattern is no list.
func countWords(re *syntax.Regexp) int {
	n := 1
	for i, sub := range re.Sub {
		words := countWords(sub)
		switch {
		case words == 0:
			return 0
		case re.Op == syntax.OpAlternate && i > 0:
			n += words
		default:
			n *= words
		}
		n = min(n, MaxPattern)
	}
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpCapture, syntax.OpConcat, syntax.OpAlternate:
		return n
	case syntax.OpQuest:
		return n + 1
	case syntax.OpLiteral:
		if slices.ContainsFunc(re.Rune, notInWord) {
			return 0
		}
		return n
	case syntax.OpCharClass:
		runes := classRunes(re.Rune)
		if len(runes) == 0 || slices.ContainsFunc(runes, notInWord) {
			return 0
		}
		return n
	}
	return 0
}

// notInWord reports whether a rune matches more than its own bytes, or ends a line.
func notInWord(r rune) bool { return r == utf8.RuneError || r == '\n' || !utf8.ValidRune(r) }

// classRunes returns the runes of a class; nil if there are more than maxClass.
func classRunes(ranges []rune) (all []rune) {
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(all) == maxClass {
				return nil
			}
			all = append(all, r)
		}
	}
	return all
}

// grouped returns the pattern of a list with its words grouped by their first letters: for abc|xyz|abd, ab(?:c|d)|xyz.
// The result matches the same texts, and prefers the same one of several at a position: words that begin with different
// letters never match at the same position.
func grouped(re *syntax.Regexp, depth int) *syntax.Regexp {
	if re.Op == syntax.OpAlternate {
		return oneOf(groupWords(re.Sub, depth))
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		out.Sub[i] = grouped(sub, depth)
	}
	return &out
}

// groupWords returns the groups of some words.
func groupWords(words []*syntax.Regexp, depth int) (groups []*syntax.Regexp) {
	if depth == maxGroup {
		return words
	}
	at := map[rune]int{} // by first letter: the group that the next word with this letter joins
	var firsts []*syntax.Regexp
	var rests [][]*syntax.Regexp // by group: its words without the first letter
	var flags syntax.Flags
	for _, word := range flattened(words) {
		first, rest := cutFirst(word)
		if first == nil || first.Flags != flags { // a word after this one must not come before it
			clear(at)
		}
		if first != nil {
			flags = first.Flags
			if i, ok := at[first.Rune[0]]; ok {
				rests[i] = append(rests[i], rest)
				continue
			}
			at[first.Rune[0]] = len(groups)
		}
		groups, firsts, rests = append(groups, word), append(firsts, first), append(rests, []*syntax.Regexp{rest})
	}
	for i, rest := range rests {
		if len(rest) == 1 {
			groups[i] = grouped(groups[i], depth)
		} else {
			groups[i] = inOrder(firsts[i], oneOf(groupWords(rest, depth+1)))
		}
	}
	return groups
}

// flattened returns the words with each alternation and class replaced by its words, also after a literal: the parser
// has grouped words that are neighbours.
func flattened(words []*syntax.Regexp) (all []*syntax.Regexp) {
	for _, word := range words {
		switch {
		case word.Op == syntax.OpAlternate:
			all = append(all, flattened(word.Sub)...)
		case word.Op == syntax.OpCharClass:
			for _, r := range classRunes(word.Rune) {
				all = append(all, &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{r}})
			}
		case word.Op == syntax.OpConcat && len(word.Sub) == 2 && word.Sub[0].Op == syntax.OpLiteral && word.MaxCap() == 0:
			for _, rest := range flattened(word.Sub[1:]) {
				all = append(all, inOrder(word.Sub[0], rest))
			}
		default:
			all = append(all, word)
		}
	}
	return all
}

// cutFirst returns the first letter of a word and its rest; first is nil if the word begins otherwise, and if it has
// capturing groups, which must stay in order.
func cutFirst(word *syntax.Regexp) (first, rest *syntax.Regexp) {
	begin, tail := word, []*syntax.Regexp(nil)
	if word.Op == syntax.OpConcat && word.MaxCap() == 0 {
		begin, tail = word.Sub[0], word.Sub[1:]
	}
	if begin.Op != syntax.OpLiteral {
		return nil, nil
	}
	first = &syntax.Regexp{Op: syntax.OpLiteral, Flags: folds(begin), Rune: begin.Rune[:1]}
	rest = &syntax.Regexp{Op: syntax.OpLiteral, Flags: folds(begin), Rune: begin.Rune[1:]}
	if len(rest.Rune) == 0 {
		rest = &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	return first, inOrder(append([]*syntax.Regexp{rest}, tail...)...)
}

// folds returns the flag of a literal that matches in any case; else 0.
func folds(literal *syntax.Regexp) syntax.Flags { return literal.Flags & syntax.FoldCase }

// oneOf returns a pattern that matches one of several.
func oneOf(all []*syntax.Regexp) *syntax.Regexp {
	if len(all) == 1 {
		return all[0]
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: all}
}

// inOrder returns a pattern that matches several in a row. It joins the first two if they are literals.
func inOrder(all ...*syntax.Regexp) *syntax.Regexp {
	if last := all[len(all)-1]; last.Op == syntax.OpConcat {
		all = append(all[:len(all)-1], last.Sub...)
	}
	if all[0].Op == syntax.OpEmptyMatch && len(all) > 1 {
		all = all[1:]
	}
	if len(all) > 1 && all[0].Op == syntax.OpLiteral && all[1].Op == syntax.OpLiteral && folds(all[0]) == folds(all[1]) {
		joined := *all[0]
		joined.Rune = slices.Concat(all[0].Rune, all[1].Rune)
		all = append([]*syntax.Regexp{&joined}, all[2:]...)
	}
	if len(all) == 1 {
		return all[0]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: all}
}

// ofBytes returns the pattern of a list with each letter replaced by its bytes in UTF-8, as characters: the automaton
// of a list with thousands of different letters has at most 256 classes, and needs no regexp for a line that is not
// UTF-8.
func ofBytes(re *syntax.Regexp) *syntax.Regexp {
	switch {
	case re.Op == syntax.OpLiteral && folds(re) == 0:
		return bytesOf(string(re.Rune))
	case re.Op == syntax.OpLiteral:
		var all []*syntax.Regexp
		for _, r := range re.Rune {
			cases := []rune{r}
			for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
				cases = append(cases, c)
			}
			all = append(all, bytesOfClass(cases))
		}
		return &syntax.Regexp{Op: syntax.OpConcat, Sub: all}
	case re.Op == syntax.OpCharClass:
		return bytesOfClass(classRunes(re.Rune))
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		out.Sub[i] = ofBytes(sub)
	}
	return &out
}

// bytesOf returns a literal whose characters are the bytes of a text.
func bytesOf(text string) *syntax.Regexp {
	out := &syntax.Regexp{Op: syntax.OpLiteral}
	for i := range len(text) {
		out.Rune = append(out.Rune, rune(text[i]))
	}
	return out
}

// bytesOfClass returns a pattern for the bytes of one of some runes.
func bytesOfClass(class []rune) *syntax.Regexp {
	var all []*syntax.Regexp
	ascii := &syntax.Regexp{Op: syntax.OpCharClass}
	for _, r := range slices.Sorted(slices.Values(class)) {
		if r < utf8.RuneSelf {
			ascii.Rune = append(ascii.Rune, r, r)
		} else {
			all = append(all, bytesOf(string(r)))
		}
	}
	if len(ascii.Rune) > 0 {
		all = append(all, ascii)
	}
	return oneOf(all)
}
