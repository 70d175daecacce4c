package intent

import (
	"strings"
	"unicode"
)

// languages are the codes of ISO 639-1, in alphabetical order.
const languages = " aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de " +
	"dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io " +
	"is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt " +
	"my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm " +
	"sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "

func isLanguage(code string) bool { return len(code) == 2 && strings.Contains(languages, " "+code+" ") }

// commonWords are frequent words of a language that are no words of the other languages here.
var commonWords = map[string]string{
	"de": " und nicht eine einen einem für bitte der sowie werden soll sollen auf aus ist ",
	"en": " the and with from should which this that please into are be for ",
	"es": " los las el y según debe deben archivo sobre más ",
	"fr": " les avec pour dans et aux doit fichier une sont chaque cette ",
	"it": " gli della delle dei nel nella sono ogni più devono il ",
	"nl": " het een van voor niet naar worden zijn deze moet uit wordt ",
	"pt": " os uma não em ao pelo são arquivo arquivos cada ",
}

// minWords is the number of different common words of another language that make a text one of that language, if it
// has none of its own.
const minWords = 3

// scripts are the scripts of languages that are written in one script.
var scripts = map[string][]*unicode.RangeTable{
	"ar": {unicode.Arabic}, "be": {unicode.Cyrillic}, "bg": {unicode.Cyrillic}, "bn": {unicode.Bengali},
	"el": {unicode.Greek}, "fa": {unicode.Arabic}, "he": {unicode.Hebrew}, "hi": {unicode.Devanagari},
	"hy": {unicode.Armenian}, "ja": {unicode.Han, unicode.Hiragana, unicode.Katakana}, "ka": {unicode.Georgian},
	"ko": {unicode.Hangul}, "mk": {unicode.Cyrillic}, "mr": {unicode.Devanagari}, "ru": {unicode.Cyrillic},
	"ta": {unicode.Tamil}, "th": {unicode.Thai}, "uk": {unicode.Cyrillic}, "ur": {unicode.Arabic}, "zh": {unicode.Han},
}

// minLetters is the number of letters from which the script of a text says something.
const minLetters = 20

// sameLanguage checks that a text is not clearly in another language than the detected one: it has no letter of that
// language's script, or no common word of that language but several of another.
func (c *checker) sameLanguage(code, at, text string) {
	own, letters := 0, 0
	tables, oneScript := scripts[code]
	if !oneScript {
		tables = []*unicode.RangeTable{unicode.Latin}
	}
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if unicode.In(r, tables...) {
				own++
			}
		}
	}
	words := commonWords[code]
	switch {
	case letters >= minLetters && own == 0 && (oneScript || words != ""):
		c.fault("%s: no letter of the script of %q, which is detectedLanguage; write it in that language", at, code)
	case words != "":
		if other := clearlyOther(code, text); other != "" {
			c.fault("%s: the words are those of %q, and detectedLanguage is %q; write it in that language", at, other, code)
		}
	}
}

// clearlyOther returns the language of a text that has no common word of the language code; "" if that is not clear.
func clearlyOther(code, text string) string {
	seen, hits := map[string]bool{}, map[string]int{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if seen[word] {
			continue
		}
		seen[word] = true
		for language, words := range commonWords {
			if strings.Contains(words, " "+word+" ") {
				hits[language]++
			}
		}
	}
	if hits[code] > 0 {
		return ""
	}
	best := ""
	for language, n := range hits {
		if n >= minWords && (best == "" || n > hits[best] || n == hits[best] && language < best) {
			best = language
		}
	}
	return best
}
