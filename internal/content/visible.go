package content

import (
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible makes control characters (but \t and \n), C1, bidi, zero-width, tag and other hidden
// characters and invalid UTF-8 visible: \x1b, \u{202e}; with json as \u202e (pairs above U+FFFF), an invalid byte as \ufffd.
// Idempotent; the identical string where there is nothing to do.
//
// A carriage return shows as \r, except before a newline. What stays, because writing needs it and it shows there:
//   - a zero-width joiner between the pictographs of one emoji, and a variation selector (U+FE0E, U+FE0F) after one or in a keycap;
//   - the three flags made of tag characters (England, Scotland, Wales), and no other tags;
//   - one zero-width (non-)joiner between two letters of a script whose writing has it (Arabic, the Indic scripts, Khmer,
//     Mongolian …), or after a virama; Mongolian's own selectors after a letter of it.
//
// All other variation selectors show: each can carry bits that nobody sees.
func Visible(s string, json bool) string {
	i := next(s, 0)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8 + 16)
	var c before
	done := 0
	for i < len(s) {
		c.skip(s[done:i])
		b.WriteString(s[done:i])
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			writeByte(&b, s[i], json)
			c = before{}
		default:
			if n := c.keeps(r, s[i+size:]); n >= 0 {
				size += n
				b.WriteString(s[i : i+size])
				c.take(r)
				if n > 0 {
					c = before{}
				}
				break
			}
			writeRune(&b, r, json)
			c = before{}
		}
		i += size
		done = i
		i = next(s, i)
	}
	b.WriteString(s[done:])
	return b.String()
}

// VisibleLine is what others named, a file or a JSON Pointer, as it stands in a line of text: in one line, its hidden characters
// visible. [Hidden] takes it back.
func VisibleLine(name string) string {
	return Visible(strings.ReplaceAll(name, "\n", `\x0a`), false)
}

// next is the first index from i on of something that hides, or may, or is invalid; len(s) where nothing does.
func next(s string, i int) int {
	for i < len(s) {
		if s[i] < utf8.RuneSelf {
			i = ascii(s, i)
			if i == len(s) {
				break
			}
			if c := s[i]; c < utf8.RuneSelf {
				if c == '\r' && i+1 < len(s) && s[i+1] == '\n' {
					i += 2
					continue
				}
				if c < 0x20 && c != '\t' && c != '\n' || c == 0x7f {
					return i
				}
				i++
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || hides(r) != shows {
			return i
		}
		i += size
	}
	return i
}

// Plain says that s is printable ASCII: each byte is a char, a grapheme, and visible.
func Plain(s string) bool { return ascii(s, 0) == len(s) }

// ascii is the first index from i on of a byte that is not printable ASCII. Eight at a time.
func ascii(s string, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		del := w ^ ones*0x7f
		if hit := (w | (w-ones*0x20)&^w | (del-ones)&^del) & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			break
		}
	}
	return i
}

type hiding uint8

const (
	shows     hiding = iota
	hidden           // always
	joiner           // U+200C, U+200D
	selector         // U+FE0E, U+FE0F
	mongolian        // U+180B–U+180F
	tag              // U+E0020–U+E007F
)

// hides classes runes: general categories Cc and Cf but the signs that are seen, Zl and Zp,
// Default_Ignorable_Code_Point, and noncharacters (Unicode 15).
func hides(r rune) hiding {
	switch {
	case r < 0x300:
		if r < 0x20 && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0xad {
			return hidden
		}
		return shows
	case r >= 0x3165 && r < 0xfdd0: // CJK, Hangul, private use
		return shows
	case r < 0x2000:
		switch {
		case r >= 0x180b && r <= 0x180f:
			return mongolian
		case r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5:
			return hidden
		}
		return shows
	case r < 0x3165:
		switch {
		case r == 0x200c, r == 0x200d:
			return joiner
		case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0x3164:
			return hidden
		}
		return shows
	case r <= 0xffff:
		switch {
		case r == 0xfe0e, r == 0xfe0f:
			return selector
		case r <= 0xfdef, r >= 0xfe00 && r <= 0xfe0d, r == 0xfeff, r == 0xffa0, r >= 0xfff0 && r <= 0xfffb, r >= 0xfffe:
			return hidden
		}
		return shows
	case r >= 0xe0000 && r <= 0xe0fff:
		if r >= 0xe0020 && r <= 0xe007f {
			return tag
		}
		return hidden
	case r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a, r >= 0x13430 && r <= 0x1343f, r&0xfffe == 0xfffe:
		return hidden
	}
	return shows
}

// before is what stands before a rune: the last rune that is shown as it is, and
// whether it ends (the beginning of) an emoji.
type before struct {
	last  rune
	emoji bool
}

// skip takes text that holds nothing hidden.
func (c *before) skip(s string) {
	if s == "" {
		return
	}
	last, size := utf8.DecodeLastRuneInString(s)
	if last >= 0x1f3fb && last <= 0x1f3ff { // a skin tone belongs to what it stands after
		before, _ := utf8.DecodeLastRuneInString(s[:len(s)-size])
		c.emoji = size < len(s) && pictograph(before) || size == len(s) && c.emoji
	} else {
		c.emoji = pictograph(last)
	}
	c.last = last
}

// take takes a rune that may hide but stays.
func (c *before) take(r rune) {
	c.last = r
	if r != 0xfe0e && r != 0xfe0f {
		c.emoji = false
	}
}

// keeps says whether a rune that may hide stays as it is before rest; the result is how many bytes of rest
// stay with it, or −1.
func (c *before) keeps(r rune, rest string) int {
	ok := false
	following, _ := utf8.DecodeRuneInString(rest)
	switch hides(r) {
	case shows:
		ok = true
	case joiner:
		switch {
		case r == 0x200d && c.emoji:
			ok = pictograph(following)
		default:
			ok = joins(c.last) && joins(following) || unicode.Is(viramas, c.last)
		}
	case selector:
		ok = c.last != 0xfe0e && c.last != 0xfe0f && c.emoji ||
			following == 0x20e3 && (c.last == '#' || c.last == '*' || c.last >= '0' && c.last <= '9')
	case mongolian:
		ok = unicode.In(c.last, unicode.Mongolian) && unicode.IsLetter(c.last)
	case tag:
		if c.last == 0x1f3f4 && r == 0xe0067 {
			for _, flag := range []string{"beng", "bsct", "bwls"} {
				if after := tags(flag); strings.HasPrefix(rest, after) {
					return len(after)
				}
			}
		}
	}
	if ok {
		return 0
	}
	return -1
}

// tags writes ASCII in tag characters, and the one that ends a flag.
func tags(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(0xe0000 + r)
	}
	b.WriteRune(0xe007f)
	return b.String()
}

// pictograph is Extended_Pictographic, and the arrows and symbols in whose blocks most of it stands.
func pictograph(r rune) bool {
	switch {
	case r < 0x2190:
		return r == 0xa9 || r == 0xae || r == 0x203c || r == 0x2049 || r == 0x2122 || r == 0x2139
	case r < 0x1f000:
		return r <= 0x2bff || r == 0x3030 || r == 0x303d || r == 0x3297 || r == 0x3299
	}
	return r <= 0x1faff && (r < 0x1f1e6 || r > 0x1f1ff) && (r < 0x1f3fb || r > 0x1f3ff)
}

// joins says whether r is a letter or mark of a script in which joiners change what is seen.
func joins(r rune) bool {
	return r >= 0x600 && (unicode.IsLetter(r) || unicode.IsMark(r)) && unicode.In(r,
		unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Mandaic, unicode.Manichaean, unicode.Psalter_Pahlavi,
		unicode.Phags_Pa, unicode.Adlam, unicode.Hanifi_Rohingya, unicode.Sogdian,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Balinese, unicode.Javanese)
}

// viramas are the signs of Indic scripts that take the vowel from a consonant (Indic_Syllabic_Category Virama).
var viramas = &unicode.RangeTable{R16: []unicode.Range16{
	{0x094d, 0x094d, 1}, {0x09cd, 0x09cd, 1}, {0x0a4d, 0x0a4d, 1}, {0x0acd, 0x0acd, 1}, {0x0b4d, 0x0b4d, 1},
	{0x0bcd, 0x0bcd, 1}, {0x0c4d, 0x0c4d, 1}, {0x0ccd, 0x0ccd, 1}, {0x0d4d, 0x0d4d, 1}, {0x0dca, 0x0dca, 1},
	{0x1039, 0x1039, 1}, {0x17d2, 0x17d2, 1}, {0x1b44, 0x1b44, 1}, {0xa9c0, 0xa9c0, 1},
}}

func writeByte(b *strings.Builder, c byte, json bool) {
	if json {
		b.WriteString(`\ufffd`)
		return
	}
	b.WriteString(`\x`)
	writeHex(b, rune(c), 2)
}

func writeRune(b *strings.Builder, r rune, json bool) {
	switch {
	case r == '\r':
		b.WriteString(`\r`)
	case json && r > 0xffff:
		high, low := utf16.EncodeRune(r)
		b.WriteString(`\u`)
		writeHex(b, high, 4)
		b.WriteString(`\u`)
		writeHex(b, low, 4)
	case json:
		b.WriteString(`\u`)
		writeHex(b, r, 4)
	case r < 0x80:
		b.WriteString(`\x`)
		writeHex(b, r, 2)
	default:
		b.WriteString(`\u{`)
		writeHex(b, r, 1)
		b.WriteByte('}')
	}
}

// writeHex writes at least width digits.
func writeHex(b *strings.Builder, r rune, width int) {
	for width < 8 && r>>(4*width) != 0 {
		width++
	}
	for width--; width >= 0; width-- {
		b.WriteByte("0123456789abcdef"[r>>(4*width)&15])
	}
}

// Hidden takes a name as Visible or [VisibleLine] showed it back to the bytes it stands for. What neither would
// have written stays: a name that holds the text \x41 means just that. A name that
// holds the text \x1b itself cannot be told from one that holds an escape character: try the name as given first.
func Hidden(shown string) string {
	i := strings.IndexByte(shown, '\\')
	if i < 0 {
		return shown
	}
	b := []byte(shown[:i])
	for i < len(shown) {
		n := 0
		if shown[i] == '\\' {
			b, n = unhide(b, shown[i:])
		}
		if n == 0 {
			b = append(b, shown[i])
			n = 1
		}
		i += n
	}
	return string(b)
}

// unhide appends what the escape at the start of s stands for; n is its length, 0 where there is none.
func unhide(b []byte, s string) (_ []byte, n int) {
	switch {
	case strings.HasPrefix(s, `\r`):
		return append(b, '\r'), 2
	case strings.HasPrefix(s, `\x`):
		if c, ok := hexadecimal(s[2:], 2); ok && (c >= 0x80 || c == '\n' || hides(c) != shows) {
			return append(b, byte(c)), 4
		}
	case strings.HasPrefix(s, `\u{`):
		if end := strings.IndexByte(s[:min(len(s), 10)], '}'); end > 3 {
			if r, ok := hexadecimal(s[3:], end-3); ok && hides(r) != shows && r >= 0x80 {
				return utf8.AppendRune(b, r), end + 1
			}
		}
	case strings.HasPrefix(s, `\u`):
		r, ok := hexadecimal(s[2:], 4)
		if !ok {
			return b, 0
		}
		n = 6
		if utf16.IsSurrogate(r) && strings.HasPrefix(s[6:], `\u`) {
			low, _ := hexadecimal(s[8:], 4)
			r = utf16.DecodeRune(r, low)
			n = 12
		}
		if hides(r) != shows {
			return utf8.AppendRune(b, r), n
		}
	}
	return b, 0
}

// hexadecimal takes n digits, lower case as Visible writes them.
func hexadecimal(s string, n int) (rune, bool) {
	if len(s) < n || strings.ToLower(s[:n]) != s[:n] {
		return 0, false
	}
	v, err := strconv.ParseUint(s[:n], 16, 32)
	return rune(v), err == nil && v <= unicode.MaxRune
}
