package embed

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// class says what an ASCII character is for the tokenizer.
type class uint8

const (
	inWord class = iota
	space
	dropped
	alone // a word by itself
)

var classes = func() (of [utf8.RuneSelf]class) {
	for c := range of {
		r := rune(c)
		switch {
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			of[c] = space
		case unicode.IsControl(r):
			of[c] = dropped
		case unicode.IsPunct(r) || unicode.IsSymbol(r):
			of[c] = alone
		}
	}
	return of
}()

// eachWord calls use with the words of a text as BERT's uncased tokenizer splits them: in lower case, without accents
// and control characters, split at white space and around punctuation and ideographs. It ends when use returns false.
// A word is valid until use returns; one of more than maxWord characters is nil.
func eachWord(text string, use func(word []byte) bool) {
	buffer := make([]byte, 0, 4*maxWord+utf8.UTFMax)
	w, n := buffer, 0 // the word so far, and its number of characters
	flush := func() bool {
		word, long := w, n > maxWord
		w, n = buffer[:0], 0
		switch {
		case long:
			return use(nil)
		case len(word) > 0:
			return use(word)
		}
		return true
	}
	add := func(r rune) {
		if n++; n <= maxWord {
			w = utf8.AppendRune(w, r)
		}
	}
	var decomposed [64]byte
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch classes[c] {
			case inWord:
				if 'A' <= c && c <= 'Z' {
					c += 'a' - 'A'
				}
				if n++; n <= maxWord {
					w = append(w, c)
				}
			case space:
				if !flush() {
					return
				}
			case alone:
				if !flush() || !use(append(buffer[:0], c)) {
					return
				}
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		case unicode.IsSpace(r):
			if !flush() {
				return
			}
		case isIdeograph(r):
			if !flush() || !use(utf8.AppendRune(buffer[:0], r)) {
				return
			}
		default:
			for _, r := range string(norm.NFD.AppendString(decomposed[:0], text[i:i+size])) {
				switch r = unicode.ToLower(r); {
				case unicode.Is(unicode.Mn, r):
				case r < utf8.RuneSelf && classes[r] == alone || unicode.IsPunct(r):
					if !flush() || !use(utf8.AppendRune(buffer[:0], r)) {
						return
					}
				default:
					add(r)
				}
			}
		}
		i += size
	}
	flush()
}

// isIdeograph reports whether the tokenizer makes a word of each such character: those of the blocks of CJK
// ideographs, but not kana and Hangul.
func isIdeograph(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0xf900 && r <= 0xfaff ||
		r >= 0x20000 && r <= 0x2a6df || r >= 0x2a700 && r <= 0x2ceaf || r >= 0x2f800 && r <= 0x2fa1f
}

// pieces appends the ids of the pieces of a text to ids until these are max.
func (t *table) pieces(ids []uint16, text string, most int) []uint16 {
	eachWord(text, func(word []byte) bool {
		ids = t.split(ids, word)
		return len(ids) < most
	})
	return ids[:min(len(ids), most)]
}

// split appends the ids of a word's pieces, each the longest of the vocabulary from where the last one ended; unknown,
// if that comes to no end.
func (t *table) split(ids []uint16, word []byte) []uint16 {
	before := len(ids)
	of := t.words
	for from := 0; from < len(word); of = t.parts {
		end := min(len(word), from+t.longest)
		for ; end > from; end-- {
			if id, ok := of[string(word[from:end])]; ok {
				ids = append(ids, id)
				break
			}
		}
		if end == from {
			return append(ids[:before], unknown)
		}
		from = end
	}
	if len(ids) == before {
		return append(ids, unknown)
	}
	return ids
}
