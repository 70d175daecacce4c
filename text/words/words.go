// Package words splits text into search terms: words, parts of identifiers, numbers and CJK characters, folded and
// stemmed so that a question and a text that say the same have the same terms.
//
// "HTTPServer" is http, server; "read_all" is read, all; "450,000", "450.000" and "450000" are one term; "450 000" may
// also be two numbers, so it is 450000, 450 and 000; "Führung" is fuhrung; English words are stemmed ("targets" is
// target). Each character of a script without blanks (Chinese, Thai, Lao, Burmese …) is a term.
package words

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"
)

// maxTerm is the largest term in bytes; longer ones, such as base64, are cut.
const maxTerm = 64

// Terms returns the terms of a text in order.
func Terms(text string) []string {
	var all []string
	Each(text, func(term string, _, _ int) { all = append(all, term) })
	return all
}

// Each calls visit with each term of a text, and with the range in bytes of the word or number that it is a part of.
// It takes linear time.
func Each(text string, visit func(term string, from, to int)) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case isSingle(r):
			if !unicode.IsMark(r) { // vowels and tones above and below letters, which the index drops
				visit(text[i:i+size], i, i+size)
			}
			i += size
		case isWord(r):
			end := wordEnd(text, i)
			one := func(term string) { visit(term, i, end) }
			if to := numberEnd(text, i, end); to > end {
				end = to
				number(text[i:end], one)
			} else {
				split(text[i:end], one)
			}
			i = end
		default:
			i += size
		}
	}
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// isSingle reports whether a character is a term by itself: its script has no blanks between words.
func isSingle(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
		unicode.Lao, unicode.Myanmar, unicode.Khmer)
}

func wordEnd(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isWord(r) || isSingle(r) {
			break
		}
		i += size
	}
	return i
}

// separators of thousands. Blanks may also stand between two numbers.
const (
	marks  = ",.'’"
	blanks = " \u00a0\u2009\u202f"
)

// numberEnd returns the end of a number whose digits are grouped by thousands with one kind of separator: 1,234,567 or
// 1.234.567 or 1 234 567. It returns end for all else.
func numberEnd(text string, start, end int) int {
	if end-start > 3 || !allDigits(text[start:end]) {
		return end
	}
	separator, size := utf8.DecodeRuneInString(text[end:])
	if !strings.ContainsRune(marks+blanks, separator) {
		return end
	}
	for group := text[end:]; len(group) >= size+3 && strings.HasPrefix(group, string(separator)) &&
		allDigits(group[size:size+3]); group = text[end:] {
		next, _ := utf8.DecodeRuneInString(group[size+3:])
		if unicode.IsDigit(next) || isWord(next) && strings.ContainsRune(blanks, separator) {
			break
		}
		end += size + 3
	}
	return end
}

// number visits a grouped number without its separators; if they are blanks, also each group.
func number(text string, visit func(term string)) {
	groups := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
	term(strings.Join(groups, ""), visit)
	for _, g := range groups {
		if strings.ContainsAny(text, blanks) {
			term(g, visit)
		}
	}
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// split splits a word at its humps: HTTPServer, readAll.
func split(word string, visit func(term string)) {
	from := 0
	var before, last rune // the two runes before
	for i, r := range word {
		lower := unicode.IsLower(r)
		switch {
		case unicode.IsUpper(r) && unicode.IsLower(last), unicode.IsUpper(r) && unicode.IsDigit(last):
			term(word[from:i], visit)
			from = i
		case lower && unicode.IsUpper(last) && unicode.IsUpper(before):
			if at := i - utf8.RuneLen(last); at > from {
				term(word[from:at], visit)
				from = at
			}
		}
		before, last = last, r
	}
	term(word[from:], visit)
}

// stems remembers the stem of the last word of each hash: the stemmer takes a microsecond a word, and texts repeat
// theirs. It needs no lock, which goroutines that split texts at once would wait for.
var (
	stems [1 << 15]atomic.Pointer[stemmed]
	seed  = maphash.MakeSeed()
)

type stemmed struct{ word, stem string }

func term(word string, visit func(string)) {
	if len(word) > maxTerm {
		word = word[:maxTerm]
		for !utf8.ValidString(word) && len(word) > maxTerm-utf8.UTFMax {
			word = word[:len(word)-1]
		}
	}
	slot := &stems[maphash.String(seed, word)%uint64(len(stems))]
	known := slot.Load()
	if known == nil || known.word != word {
		word = strings.Clone(word) // the text is not kept
		known = &stemmed{word, normalize(word)}
		slot.Store(known)
	}
	if known.stem != "" {
		visit(known.stem)
	}
}

// normalize folds a word to lower case without diacritics, and stems it if it is a word of plain letters.
func normalize(word string) string {
	word = Fold(word)
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	if len(word) < 3 {
		return word
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// plainLetters replaces letters that have no decomposition into a plain letter.
var plainLetters = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ı", "i")

// Fold returns a text in lower case without diacritics.
func Fold(s string) string {
	s = strings.ToLower(s)
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if ascii {
		return s
	}
	return plainLetters.Replace(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToValidUTF8(s, ""))))
}
