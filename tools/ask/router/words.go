package router

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed words.txt
var wordList string

// kind is a set of the kinds that words.txt explains. The kinds after kindNames are of tokens only: text in quotation
// marks, the name of a file, and content, which is both of them and any word without a kind.
type kind uint32

const kindNames = "stop prep plain order number object plural folder shape count list find " +
	"name called begin meta mention contain known ext near back lead of article steps task noun"

const (
	stop, prep, plain, order, number, object    kind = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5
	plural, folder, shape, count, list, find    kind = 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11
	name, called, begin, meta, mention, contain kind = 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17
	known, ext, near, back, lead, of            kind = 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 23
	article, steps, task, noun                  kind = 1 << 24, 1 << 25, 1 << 26, 1 << 27
	quoted, fileName, content                   kind = 1 << 28, 1 << 29, 1 << 30
)

// entry is what words.txt says of a word.
type entry struct {
	kinds      kind
	extensions []string
	value      int // of a number
}

// lexicon has the words of en, de, fr and es. It is read when the first question comes: a start does not pay for it.
var lexicon = sync.OnceValue(func() (all [4]map[string]entry) {
	for language, code := range []string{"en", "de", "fr", "es"} {
		words := map[string]entry{}
		for line := range strings.Lines(wordList) {
			fields := strings.Fields(line)
			if len(fields) < 3 || fields[0] != code && fields[0] != "*" {
				continue
			}
			label, extensions, _ := strings.Cut(fields[1], ":")
			for i, w := range fields[2:] {
				e := words[w]
				if at := slices.Index(strings.Fields(kindNames), label); at >= 0 { // else "word", which is no kind
					e.kinds |= 1 << at
				}
				if extensions != "" {
					e.extensions = strings.Split(extensions, ",")
				} else if label == "ext" || label == "near" {
					e.extensions = []string{w}
				}
				if e.value = i + 2; label == "ext" && extensions == "" {
					words[w+"s"] = e
				}
				words[w] = e
			}
		}
		all[language] = words
	}
	return all
})

// lookUp returns the entry of a word in a language or, if it has none, in the first other that has one. Except in
// English, up to three last letters of longer words may differ: "geänderten", "organizadas".
func lookUp(word string, language int) (entry, bool) {
	for i := range 4 {
		if e, ok := lexicon()[(language+i)%4][word]; ok {
			return e, true
		}
	}
	for n := len(word) - 1; n >= 4 && language > 0 && strings.Trim(word[n:], "aeosnm") == "" && len(word)-n < 4; n-- {
		for _, ending := range []string{"", "e", "en", "er", "o", "os", "a", "as", "s", "t", "es"} {
			if e, ok := lexicon()[language][word[:n]+ending]; ok {
				return e, true
			}
		}
	}
	return entry{}, false
}

// isExtension reports whether words.txt has s as an extension itself, not as a word for some.
func isExtension(s string) bool { return slices.Contains(lexicon()[0][s].extensions, s) }
