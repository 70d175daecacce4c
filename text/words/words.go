// Package words splits text into search terms: words, parts of identifiers, numbers and CJK characters, folded and
// stemmed so that a question and a text that say the same have the same terms.
//
// "HTTPServer" is http, server; "read_all" is read, all; "450,000" and "450000" are one term; "Führung" is fuhrung;
// English words are stemmed ("targets" is target). Each character of a script without blanks (Chinese, Thai, Lao, Burmese …) is a term.
package words

import (
	"strings"
	"sync"
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
	Each(text, func(term string) { all = append(all, term) })
	return all
}

// Each calls visit with each term of a text. It takes linear time.
func Each(text string, visit func(term string)) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case isSingle(r):
			visit(text[i : i+size])
			i += size
		case isWord(r):
			end := wordEnd(text, i)
			if r >= '0' && r <= '9' {
				end = numberEnd(text, i, end)
			}
			split(text[i:end], visit)
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

// numberEnd returns the end of a number whose digits are grouped by thousands: 1,234,567 or 1.234.567.
func numberEnd(text string, start, end int) int {
	if !allDigits(text[start:end]) || end-start > 3 {
		return end
	}
	for end+4 <= len(text) && (text[end] == ',' || text[end] == '.' || text[end] == '\'') &&
		allDigits(text[end+1:end+4]) && (end+4 == len(text) || !isWord(rune(text[end+4]))) {
		end += 4
	}
	return end
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// split splits a word at its humps: HTTPServer, readAll.
func split(word string, visit func(term string)) {
	if strings.ContainsAny(word, ",.'") { // a grouped number
		visit(strings.NewReplacer(",", "", ".", "", "'", "").Replace(word))
		return
	}
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

// stems remembers stems: the stemmer takes a microsecond a word, and texts repeat theirs.
var stems struct {
	sync.RWMutex
	of map[string]string
}

// maxStems bounds the words whose stems are remembered.
const maxStems = 1 << 16

func term(word string, visit func(string)) {
	if len(word) > maxTerm {
		word = word[:maxTerm]
		for !utf8.ValidString(word) && len(word) > maxTerm-utf8.UTFMax {
			word = word[:len(word)-1]
		}
	}
	stems.RLock()
	stem, ok := stems.of[word]
	stems.RUnlock()
	if !ok {
		stem = normalize(word)
		stems.Lock()
		if len(stems.of) >= maxStems || stems.of == nil {
			stems.of = make(map[string]string, 1<<12)
		}
		stems.of[strings.Clone(word)] = stem
		stems.Unlock()
	}
	if stem != "" {
		visit(stem)
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
