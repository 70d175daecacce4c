package router

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/text/words"
)

// token is a word of a question, a quoted text or a file name.
type token struct {
	entry
	word     string // folded
	from, to int    // byte range of the text in which it stands: "PDF-Dateien" for both of its words
	taken    bool   // a rule understands it
}

func (t token) is(k kind) bool { return t.kinds&k != 0 }

// pattern matches a quoted text of at most 80 characters, or a run of characters of words, names and paths.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("[\"“„«»`]\\s*([^\"“”„«»`\n]{1,80}?)\\s*[\"“”«»`]" +
		`|\B['‘]([^'’\n]{1,80})['’]\B|[.*]{0,2}[\pL\pN\pM_][\pL\pN\pM_.*/\\+#~@-]*`)
})

// scan splits a text into tokens and looks them up. The language of a text is that which knows most of its words.
func scan(text string) (all []token) {
	for _, m := range pattern().FindAllStringSubmatchIndex(text, -1) {
		if from, to := max(m[2], m[4]), max(m[3], m[5]); from >= 0 {
			all = appendChunk(all, token{word: words.Fold(text[from:to]), from: from, to: to, entry: entry{kinds: quoted}})
		} else {
			chunk := strings.TrimRight(text[m[0]:m[1]], `.-/\@~`)
			all = appendChunk(all, token{word: words.Fold(chunk), from: m[0], to: m[0] + len(chunk)})
		}
	}
	var votes [4]int
	for _, t := range all {
		for i := range votes {
			if _, ok := lexicon()[i][t.word]; ok {
				votes[i]++
			}
		}
	}
	language := slices.Index(votes[:], slices.Max(votes[:]))
	for i := range all {
		t := &all[i]
		if n, err := strconv.Atoi(t.word); err == nil {
			t.kinds, t.value = number, n
		} else if t.kinds == 0 {
			if t.entry, _ = lookUp(t.word, language); t.is(known) {
				t.kinds |= fileName
			}
		}
	}
	for i := range all {
		t := &all[i]
		if t.kinds == near && isBesideFile(all, i, language == 0) || t.is(near) && isBesideExtension(all, i) {
			t.kinds = ext
		}
		beforeOf := i+1 < len(all) && all[i+1].is(of) && isExtensionAlone(all, i+2)
		if t.is(noun) && (isExtensionAlone(all, i-1) || beforeOf) || // "log levels", "levels of logs"
			t.is(shape) && isExtensionAlone(all, i-1) && len(all[i-1].extensions) == 1 { // "log formats"
			t.kinds = content
		}
		if i > 0 && all[i-1].is(called) && !t.is(stop|prep|of|object|ext|folder) { // "a file called summary"
			t.kinds &= number | quoted | fileName
		}
		if t.kinds &^= near; t.kinds&^(task|noun) == 0 || t.is(quoted|fileName) {
			t.kinds |= content
		}
	}
	return all
}

// appendChunk adds a quoted text, or the tokens of a text without spaces: a file name, an extension, a path, or words.
func appendChunk(all []token, t token) []token {
	dot := strings.LastIndexByte(t.word, '.')
	end := t.word[dot+1:]
	_, isWord := lookUp(t.word, 0)
	switch {
	case t.word == "": // combining marks
		return all
	case dot == 0 && len(end) <= 8 && !t.is(quoted): // ".go"
		if t.kinds, t.extensions = near, []string{end}; isExtension(end) {
			t.kinds = lexicon()[0][end].kinds & (ext | near)
		}
	case !isWord && areExtensions(strings.Split(t.word, "/")): // ".doc/.docx"
		for _, e := range strings.Split(t.word, "/") {
			all = appendChunk(all, token{word: e, from: t.from, to: t.to})
		}
		return all
	case strings.HasPrefix(t.word, "*."):
		t.kinds, t.extensions = t.kinds|fileName, []string{end}
	case dot > 0 && isExtension(end) || strings.Contains(t.word, "*"):
		t.kinds |= fileName
	case !isWord && !t.is(quoted) && !strings.Contains(t.word, "/"): // a path is one word
		for _, w := range strings.FieldsFunc(t.word, func(r rune) bool { return strings.ContainsRune(`.\-+#~@`, r) }) {
			all = append(all, token{word: w, from: t.from, to: t.to})
		}
		return all
	}
	return append(all, t)
}

// areExtensions reports whether several words are extensions.
func areExtensions(list []string) bool {
	other := func(e string) bool { return !isExtension(strings.TrimPrefix(e, ".")) }
	return len(list) > 1 && !slices.ContainsFunc(list, other)
}

// isBesideFile reports whether a word such as "go" says what files are meant: "go and C files", "archivos de Python".
// In English it does not follow at once: "files go to the auditor". No "of" may precede the file: "word of every file".
func isBesideFile(all []token, at int, english bool) bool {
	between := lead | near | ext | plain
	for _, step := range []int{1, -1} {
		for i := at + step; i >= max(0, at-5) && i < min(len(all), at+6); i += step {
			if all[i].is(object) {
				return !english || i != at-1
			} else if !all[i].is(between) || all[i].is(article) && (at+1 == len(all) || !all[at+1].is(shape)) {
				break
			}
		}
		between |= stop | prep | shape // "files of type go"
	}
	return false
}

// isExtensionAlone reports whether the token at an index is a word for an extension, and neither a word for a file nor
// one or two tokens before one.
func isExtensionAlone(all []token, at int) bool {
	return at >= 0 && at < len(all) && all[at].is(ext) &&
		!slices.ContainsFunc(all[at:min(at+3, len(all))], func(t token) bool { return t.is(object) })
}

// isBesideExtension reports whether ".doc", or "doc", which also is a document, is next to an extension: "doc and
// docx".
func isBesideExtension(all []token, at int) bool {
	dotted := all[at].word[0] == '.'
	for _, step := range []int{1, -1} {
		i := at + step
		for i >= 0 && i < len(all) && all[i].is(lead) {
			i += step
		}
		if i >= 0 && i < len(all) && all[i].is(ext) && (dotted || all[at].is(object) && i != at+step) {
			return true
		}
	}
	return false
}
