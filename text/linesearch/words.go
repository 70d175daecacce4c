package linesearch

import (
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// words matches a list of words: an alternation of literal texts, with assertions such as ^, $ and \b before and after
// them. It gives the result of regexp, and takes the same time for 20 words and for 5,000. The states of an automaton
// made on demand would not fit into its table.
type words struct {
	list    []word // in the order in which regexp prefers them
	find    *literal.AhoCorasick
	longest int  // bytes of the longest match
	fold    bool // the words match in any case
	suffice bool // each line that holds a text of find matches
	// other maps each rune that matches a letter of a word but is not ASCII, such as ſ for s, to that letter. To find, it
	// is a text of its own, which leads to lines that must be searched in a copy without it.
	other  map[rune]string
	groups func() *regexp.Regexp // with capturing groups: matches the text of a word; else nil
}

// word is a text and the assertions that hold before and after it.
type word struct {
	text          string
	before, after syntax.EmptyOp
	again         bool // has another rune of a class than its first
}

// Limits of a list of words.
const (
	fewWords     = 16      // up to this number of alternatives, a list is searched as other patterns are
	vectorWords  = 64      // up to this number of words, vectors find each of them
	maxWordBytes = 1 << 20 // sum of the lengths of all words
	maxWordSize  = 8 << 10 // a word; the history of a long line holds the longest match
)

// newWords returns nil if the pattern is no list of more than fewWords words, or if a limit is exceeded.
func newWords(tree *syntax.Regexp) *words {
	l := &wordList{}
	list, ok := l.expand(tree)
	alternatives := 0
	for _, w := range list {
		if !w.again {
			alternatives++
		}
	}
	if !ok || alternatives <= fewWords || l.fold && l.exact || l.captures > 0 && ambiguous(list) {
		return nil
	}
	v := &words{list: list, fold: l.fold, suffice: true, other: map[rune]string{}}
	alike := map[byte]byte{}
	if l.fold {
		for c := byte('a'); c <= 'z'; c++ {
			alike[c&^0x20] = c
		}
	}
	for i := range list {
		w := &list[i]
		if w.text == "" || len(w.text) > maxWordSize {
			return nil
		}
		v.longest = max(v.longest, len(w.text))
		v.suffice = v.suffice && w.before|w.after == 0
		if l.fold {
			w.text = v.foldWord(w.text)
		}
	}
	if len(v.other) > 0 {
		v.suffice = false
		v.longest *= 3 // the Kelvin sign has three bytes, k has one
	}
	if v.find = literal.NewAhoCorasick(v.texts(), alike); v.find == nil {
		return nil
	}
	if l.captures > 0 {
		v.groups = sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile(`\A(?:` + withoutAssertions(tree).String() + `)\z`)
		})
	}
	return v
}

// texts returns the texts of find.
func (v *words) texts() (all []string) {
	for _, w := range v.list {
		all = append(all, w.text)
	}
	for r := range v.other {
		all = append(all, string(r))
	}
	return all
}

// common returns needles of which each word has one at its start, or each at its end; nil if they are too many.
func (v *words) common() []literal.Needle {
	all := v.texts()
	var sets [][]literal.Needle
	for _, cut := range []func(t string, n int) string{
		func(t string, n int) string { return t[:min(n, len(t))] },
		func(t string, n int) string { return t[max(0, len(t)-n):] },
	} {
		for n := 2; n <= maxCommon; n++ {
			parts := map[string]bool{}
			for _, t := range all {
				parts[cut(t, n)] = true
			}
			sets = append(sets, literal.NewNeedles(slices.Sorted(maps.Keys(parts)), v.fold))
		}
	}
	return literal.Best(sets)
}

// maxCommon is the length of the longest needle that words have in common.
const maxCommon = 8

// ambiguous reports whether two words differ only in their assertions.
func ambiguous(list []word) bool {
	seen := map[string]word{}
	for _, w := range list {
		if other, ok := seen[w.text]; ok && (other.before != w.before || other.after != w.after) {
			return true
		}
		seen[w.text] = w
	}
	return false
}

// foldWord returns a word in lower case, or for other letters in the case that comes last, and adds the other cases of
// its letters to v.other, except for those of ASCII.
func (v *words) foldWord(text string) string {
	var out []rune
	for _, r := range text {
		all := []rune{r}
		for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
			all = append(all, c)
		}
		to := slices.Max(all)
		if first := slices.Min(all); first < utf8.RuneSelf {
			to = unicode.ToLower(first)
		}
		for _, c := range all {
			if c >= utf8.RuneSelf && c != to {
				v.other[c] = string(to)
			}
		}
		out = append(out, to)
	}
	return string(out)
}

// wordList expands a pattern to a list of words.
type wordList struct {
	fold, exact bool // there are letters that match in any case, or in one alone
	captures    int  // number of capturing groups
}

// expand returns the texts that a part of the pattern matches, with their assertions; false if it is no list.
func (l *wordList) expand(re *syntax.Regexp) ([]word, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []word{{}}, true
	case syntax.OpBeginLine:
		return []word{{before: syntax.EmptyBeginLine}}, true
	case syntax.OpEndLine:
		return []word{{before: syntax.EmptyEndLine}}, true
	case syntax.OpBeginText:
		return []word{{before: syntax.EmptyBeginText}}, true
	case syntax.OpEndText:
		return []word{{before: syntax.EmptyEndText}}, true
	case syntax.OpWordBoundary:
		return []word{{before: syntax.EmptyWordBoundary}}, true
	case syntax.OpNoWordBoundary:
		return []word{{before: syntax.EmptyNoWordBoundary}}, true
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if folds := unicode.SimpleFold(r) != r; folds && re.Flags&syntax.FoldCase != 0 {
				l.fold = true
			} else if folds {
				l.exact = true
			}
		}
		return []word{{text: string(re.Rune)}}, !slices.ContainsFunc(re.Rune, notInWord)
	case syntax.OpCharClass:
		return l.expandClass(re.Rune)
	case syntax.OpCapture:
		l.captures++
		return l.expand(re.Sub[0])
	case syntax.OpQuest:
		list, ok := l.expand(re.Sub[0])
		if re.Flags&syntax.NonGreedy != 0 {
			return append([]word{{}}, list...), ok
		}
		return append(list, word{}), ok
	case syntax.OpAlternate:
		var all []word
		for _, sub := range re.Sub {
			list, ok := l.expand(sub)
			if all = append(all, list...); !ok || bytesOf(all) > maxWordBytes {
				return nil, false
			}
		}
		return all, true
	case syntax.OpConcat:
		all := []word{{}}
		for _, sub := range re.Sub {
			list, ok := l.expand(sub)
			if ok {
				all, ok = concat(all, list)
			}
			if !ok {
				return nil, false
			}
		}
		return all, true
	}
	return nil, false
}

// notInWord reports whether a rune matches more than its own bytes, or ends a line.
func notInWord(r rune) bool { return r == utf8.RuneError || r == '\n' || !utf8.ValidRune(r) }

// maxClass is the number of runes of a class that is taken for an alternation: the parser makes one of single letters.
const maxClass = 128

// expandClass returns each rune of a class as a word.
func (l *wordList) expandClass(ranges []rune) (list []word, ok bool) {
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(list) == maxClass || notInWord(r) {
				return nil, false
			}
			list = append(list, word{text: string(r), again: len(list) > 0})
			for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
				l.exact = l.exact || !literal.InClass(ranges, c)
			}
		}
	}
	return list, true
}

// concat returns each word of as followed by each of bs; false if that makes too many, or an assertion within a word.
func concat(as, bs []word) ([]word, bool) {
	const few = 4 // (a|b|c)[0-9][0-9] is better searched by an automaton
	if min(len(as), len(bs)) > few || len(bs)*bytesOf(as)+len(as)*bytesOf(bs) > maxWordBytes {
		return nil, false
	}
	all := make([]word, 0, len(as)*len(bs))
	for _, a := range as {
		for _, b := range bs {
			switch {
			case a.text == "":
				b.before |= a.before
			case b.text == "":
				b.text, b.before, b.after = a.text, a.before, a.after|b.before
			case a.after|b.before != 0:
				return nil, false
			default:
				b.text, b.before = a.text+b.text, a.before
			}
			b.again = b.again || a.again
			all = append(all, b)
		}
	}
	return all, true
}

func bytesOf(list []word) (n int) {
	for _, w := range list {
		n += len(w.text) + 1
	}
	return n
}

// withoutAssertions returns the pattern without its assertions.
func withoutAssertions(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		out.Sub[i] = withoutAssertions(sub)
	}
	return &out
}

// wordText is a text to search for words.
type wordText struct {
	text []byte
	b    []byte // text without the runes of words.other
	at   []int  // by position in b: the position in text; nil: b is text
}

// of prepares a text.
func (v *words) of(text []byte) wordText {
	t := wordText{text: text, b: text}
	var all byte
	for _, c := range text {
		all |= c
	}
	if len(v.other) == 0 || all < utf8.RuneSelf {
		return t
	}
	t.b = make([]byte, 0, len(text))
	t.at = make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if to, ok := v.other[r]; ok {
			t.b = append(t.b, to...)
		} else {
			t.b = append(t.b, text[i:i+n]...)
		}
		for len(t.at) < len(t.b) {
			t.at = append(t.at, i)
		}
		i += n
	}
	t.at = append(t.at, len(text))
	return t
}

// position returns the position in the text of a position in b.
func (t *wordText) position(i int) int {
	if t.at == nil {
		return i
	}
	return t.at[i]
}

// first returns the range in t.b of the first match in t.b[from:] that begins before position to of the text; ok is
// false if there is none.
func (v *words) first(t *wordText, from, to int) (start, end int, ok bool) {
	i, start, end := v.find.First(t.b, from, func(i, start, end int) bool {
		if i >= len(v.list) {
			return false
		}
		w := &v.list[i]
		start, end = t.position(start), t.position(end)
		return start < to && holds(w.before, t.text, start) && holds(w.after, t.text, end)
	})
	return start, end, i >= 0
}

// findIn returns the range of the first match in a text.
func (v *words) findIn(text []byte) (start, end int, ok bool) {
	t := v.of(text)
	if start, end, ok = v.first(&t, 0, len(text)); !ok {
		return 0, 0, false
	}
	return t.position(start), t.position(end), true
}

// eachTuple is [Matcher.Groups].
func (v *words) eachTuple(text []byte, visit func(tuple []byte)) {
	t := v.of(text)
	for from := 0; ; {
		start, end, ok := v.first(&t, from, len(text))
		if !ok {
			return
		}
		from = end
		match := text[t.position(start):t.position(end)]
		if v.groups == nil {
			visit(match)
		} else {
			visitTuples(v.groups(), match, visit)
		}
	}
}

// holds reports whether all assertions of op hold at a position of a text.
func holds(op syntax.EmptyOp, text []byte, at int) bool {
	if op == 0 {
		return true
	}
	before, after := rune(-1), rune(-1) // as -1, a text begins and ends; each rune that is not ASCII is the same
	if at > 0 {
		before = rune(text[at-1])
	}
	if at < len(text) {
		after = rune(text[at])
	}
	return op&^syntax.EmptyOpContext(before, after) == 0
}
