package text

import (
	"strings"
	"unicode/utf8"
)

// maxInspected is how many bytes at the start of a line are compared with our lines: 96 letters of any alphabet.
const maxInspected = 96 * utf8.UTFMax

// foldLookalikes returns the line with the look-alikes in its first maxInspected bytes replaced by the ASCII letters.
func foldLookalikes(s string) string {
	n := min(len(s), maxInspected)
	for i := range n {
		if s[i] >= utf8.RuneSelf {
			return strings.Map(func(r rune) rune {
				if c := foldLookalike(r); c != 0 {
					return rune(c)
				}
				return r
			}, s[:n]) + s[n:]
		}
	}
	return s
}

// foldLookalike returns the ASCII character that r looks like, 0 for none.
func foldLookalike(r rune) byte {
	switch {
	case r < utf8.RuneSelf:
		return byte(r)
	case r >= 0xff01 && r <= 0xff5e: // full width
		return byte(r - 0xff01 + '!')
	case r >= 0x1d400 && r <= 0x1d6a3: // mathematical alphabets, 26 capitals and 26 small letters each
		return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(r-0x1d400)%52]
	case r >= 0x2010 && r <= 0x2015 || r == 0x2212:
		return '-'
	case r == 0xa0 || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000:
		return ' '
	}
	return lookalikes[r]
}

// lookalikes are letters of other scripts that are drawn as ASCII's in common fonts (Unicode's confusables).
var lookalikes = func() map[rune]byte {
	m := map[rune]byte{}
	for ascii, others := range map[byte]string{
		'a': "аαɑ", 'A': "АΑ", 'c': "сϲ", 'C': "СϹ", 'd': "ԁ", 'D': "Ꭰ", 'e': "еҽ", 'E': "ЕΕ", 'g': "ɡ", 'h': "һ", 'H': "НΗ", 'i': "іıι", 'I': "ІΙ",
		'k': "кκ", 'K': "КΚ", 'l': "ӏǀ", 'L': "Ꮮ", 'n': "ոп", 'N': "Ν", 'o': "оοօ", 'O': "ОΟ", 'p': "рρ", 'P': "РΡ", 'r': "г", 'R': "Ꭱ", 's': "ѕ", 'S': "Ѕ",
		't': "т", 'T': "ТΤ", 'u': "υս", 'U': "Ս", 'w': "ԝ", 'x': "хχ", 'X': "ХΧ", 'y': "у", 'Y': "Υ", ':': "：ː∶꞉", '=': "꞊",
	} {
		for _, r := range others {
			m[r] = ascii
		}
	}
	return m
}()
