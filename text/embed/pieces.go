package embed

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// eachWord calls use with the words of a text as BERT's uncased tokenizer splits them: in lower case, without accents
// and control characters, split at white space and around punctuation and ideographs. It ends when use returns false.
// A word is valid until use returns; one of more than maxWord characters is nil.
func eachWord(text string, use func(word []byte) bool) {
	buffer := make([]byte, 0, maxWord*utf8.UTFMax)
	word, n, more := buffer, 0, true // the word so far, and its number of characters
	end := func() {
		if n > maxWord {
			word = nil
		}
		more = more && (n == 0 || use(word))
		word, n = buffer, 0
	}
	add := func(r rune) {
		if n++; n <= maxWord {
			word = utf8.AppendRune(word, r)
		}
	}
	var room [64]byte
	for i := 0; i < len(text) && more; {
		r, size := utf8.DecodeRuneInString(text[i:])
		here := text[i : i+size]
		if i += size; r >= utf8.RuneSelf { // one by one: norm.Iter panics on some marks
			here = string(norm.NFD.AppendString(room[:0], here))
		}
		for _, r := range here {
			switch {
			case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
				add(r)
			case r == ' ' || r == '\n' || r == '\t' || r == '\r':
				end()
			case isAlone(r):
				end()
				add(r)
				end()
			case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Mn):
			case unicode.IsSpace(r):
				end()
			default:
				add(unicode.ToLower(r))
			}
		}
	}
	end()
}

// isAlone reports whether a character is a word by itself: punctuation, and ideographs but not kana and Hangul.
func isAlone(r rune) bool {
	return unicode.IsPunct(r) || r < utf8.RuneSelf && unicode.IsSymbol(r) ||
		r >= 0x3400 && (r <= 0x4dbf || r >= 0x4e00 && r <= 0x9fff || r >= 0xf900 && r <= 0xfaff ||
			r >= 0x20000 && r <= 0x2a6df || r >= 0x2a700 && r <= 0x2ceaf || r >= 0x2f800 && r <= 0x2fa1f)
}

// pieces returns the ids of the first MaxPieces pieces of a text: of each word the longest piece of the vocabulary that
// it begins with, then the longest from there on. A word that isn't all pieces is unknown.
func (t *table) pieces(text string) []uint16 {
	ids := make([]uint16, 0, MaxPieces+maxWord)
	eachWord(text, func(word []byte) bool {
		before, of, ok := len(ids), t.words, word != nil
		for from := 0; ok && from < len(word); of = t.parts {
			var id uint16
			to := min(len(word), from+t.longest)
			for id, ok = of[string(word[from:to])]; !ok && to > from+1; id, ok = of[string(word[from:to])] {
				to--
			}
			ids, from = append(ids, id), to
		}
		if !ok {
			ids = append(ids[:before], unknown)
		}
		return len(ids) < MaxPieces
	})
	return ids[:min(len(ids), MaxPieces)]
}
