package content

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible escapes hidden characters and invalid UTF-8: control characters (except \t and \n), C1, bidi, zero-width,
// tag characters and others become \x1b or \u{202e}. If json is true, they become \u202e (a surrogate pair above
// U+FFFF), and an invalid byte becomes \ufffd. Visible is idempotent, and returns s itself if there is nothing to
// escape.
//
// A carriage return becomes \r, except before a newline. Some hidden characters are kept where they change the
// rendering of the text:
//   - a zero-width joiner between the pictographs of one emoji, and a variation selector (U+FE0E, U+FE0F) after a
//     pictograph or in a keycap;
//   - the three flags made of tag characters (England, Scotland, Wales), and no other tags;
//   - one zero-width (non-)joiner between two letters of a script that uses joiners (Arabic, the Indic scripts, Khmer,
//     Mongolian …), or after a virama; a Mongolian variation selector after a Mongolian letter.
//
// All other variation selectors are escaped, because they can carry hidden data.
func Visible(s string, json bool) string {
	i := nextHidden(s, 0)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8 + 16)
	var c textBefore
	for done := 0; ; {
		c.addVisible(s[done:i])
		b.WriteString(s[done:i])
		if i == len(s) {
			return b.String()
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch n := c.keeps(r, s[i+size:]); {
		case n < 0, r == utf8.RuneError && size == 1:
			b.WriteString(escape(s[i:i+size], json))
			c = textBefore{}
		case n > 0:
			size += n
			b.WriteString(s[i : i+size])
			c = textBefore{}
		default:
			b.WriteString(s[i : i+size])
			c.addKept(r)
		}
		done = i + size
		i = nextHidden(s, done)
	}
}

// VisibleLine escapes a name from outside, such as a file name or a JSON Pointer, for display in one line: as
// [Visible] does, and newlines too. [Hidden] reverses it.
func VisibleLine(name string) string {
	return Visible(strings.ReplaceAll(name, "\n", `\x0a`), false)
}

// nextHidden returns the first index from i on of a character that is or may be hidden, or of an invalid byte; len(s)
// if there is none.
func nextHidden(s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c >= 0x20 && c < 0x7f || c == '\t' || c == '\n' || c == '\r' && i+1 < len(s) && s[i+1] == '\n' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || hidingOf(r) != visible {
			break
		}
		i += size
	}
	return i
}

// Plain reports whether s is printable ASCII: each byte is one visible character and one grapheme.
func Plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

type hiding uint8

const (
	visible   hiding = iota
	hidden           // always escaped
	joiner           // U+200C, U+200D
	selector         // U+FE0E, U+FE0F
	mongolian        // U+180B–U+180F
	tag              // U+E0020–U+E007F
)

// hidingRanges are the hidden runes in ascending order: the general categories Cc and Cf except visible signs, Zl and
// Zp, Default_Ignorable_Code_Point, and noncharacters up to U+FFFF (Unicode 15).
var hidingRanges = []struct {
	from, to rune
	hiding   hiding
}{
	{0, 0x08, hidden}, {0x0b, 0x1f, hidden}, {0x7f, 0x9f, hidden}, {0xad, 0xad, hidden}, {0x34f, 0x34f, hidden},
	{0x61c, 0x61c, hidden}, {0x115f, 0x1160, hidden}, {0x17b4, 0x17b5, hidden}, {0x180b, 0x180f, mongolian},
	{0x200b, 0x200b, hidden}, {0x200c, 0x200d, joiner}, {0x200e, 0x200f, hidden}, {0x2028, 0x202e, hidden},
	{0x2060, 0x206f, hidden}, {0x3164, 0x3164, hidden}, {0xfdd0, 0xfdef, hidden}, {0xfe00, 0xfe0d, hidden},
	{0xfe0e, 0xfe0f, selector}, {0xfeff, 0xfeff, hidden}, {0xffa0, 0xffa0, hidden}, {0xfff0, 0xfffb, hidden},
	{0xfffe, 0xffff, hidden}, {0x13430, 0x1343f, hidden}, {0x1bca0, 0x1bca3, hidden}, {0x1d173, 0x1d17a, hidden},
	{0xe0000, 0xe001f, hidden}, {0xe0020, 0xe007f, tag}, {0xe0080, 0xe0fff, hidden},
}

// hidingOf reports whether and how a rune is hidden.
func hidingOf(r rune) hiding {
	i := sort.Search(len(hidingRanges), func(i int) bool { return hidingRanges[i].to >= r })
	switch {
	case i < len(hidingRanges) && r >= hidingRanges[i].from:
		return hidingRanges[i].hiding
	case r > 0xffff && r&0xfffe == 0xfffe: // a noncharacter
		return hidden
	}
	return visible
}

// textBefore describes the text before a rune: the last rune that was not escaped, and whether an emoji, or the
// beginning of one, ends with it.
type textBefore struct {
	last  rune
	emoji bool
}

// addVisible updates the context after text without hidden characters.
func (c *textBefore) addVisible(s string) {
	if s == "" {
		return
	}
	last, size := utf8.DecodeLastRuneInString(s)
	if last >= 0x1f3fb && last <= 0x1f3ff { // a skin tone modifies the pictograph before it
		previous, _ := utf8.DecodeLastRuneInString(s[:len(s)-size])
		c.emoji = size < len(s) && pictograph(previous) || size == len(s) && c.emoji
	} else {
		c.emoji = pictograph(last)
	}
	c.last = last
}

// addKept updates the context after a hidden character that is kept.
func (c *textBefore) addKept(r rune) {
	c.last = r
	c.emoji = c.emoji && (r == 0xfe0e || r == 0xfe0f)
}

// keeps returns −1 if the hidden character r, followed by rest, must be escaped. Else r is kept, and the result is
// how many bytes of rest are kept with it.
func (c *textBefore) keeps(r rune, rest string) int {
	ok := false
	following, _ := utf8.DecodeRuneInString(rest)
	switch hidingOf(r) {
	case visible:
		ok = true
	case joiner:
		if r == 0x200d && c.emoji {
			ok = pictograph(following)
		} else {
			ok = joins(c.last) && joins(following) || strings.ContainsRune(viramas, c.last)
		}
	case selector:
		ok = c.last != 0xfe0e && c.last != 0xfe0f && c.emoji ||
			following == 0x20e3 && (c.last == '#' || c.last == '*' || c.last >= '0' && c.last <= '9')
	case mongolian:
		ok = unicode.In(c.last, unicode.Mongolian) && unicode.IsLetter(c.last)
	case tag:
		for _, flag := range flags {
			if c.last == 0x1f3f4 && r == 0xe0067 && strings.HasPrefix(rest, flag) {
				return len(flag)
			}
		}
	}
	if ok {
		return 0
	}
	return -1
}

// flags are the tag characters of the flags of England, Scotland and Wales after the first, which is g in each: beng,
// bsct and bwls, each followed by the tag character that ends a flag.
var flags = [...]string{
	"\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
	"\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",
}

// pictograph reports whether r is Extended_Pictographic, or in one of the Unicode blocks of arrows and symbols that
// contain most of these characters.
func pictograph(r rune) bool {
	switch {
	case r < 0x2190:
		return r == 0xa9 || r == 0xae || r == 0x203c || r == 0x2049 || r == 0x2122 || r == 0x2139
	case r < 0x1f000:
		return r <= 0x2bff || r == 0x3030 || r == 0x303d || r == 0x3297 || r == 0x3299
	}
	return r <= 0x1faff && (r < 0x1f1e6 || r > 0x1f1ff) && (r < 0x1f3fb || r > 0x1f3ff)
}

// joins reports whether r is a letter or mark of a script in which joiners change the rendering.
func joins(r rune) bool {
	return r >= 0x600 && (unicode.IsLetter(r) || unicode.IsMark(r)) && unicode.In(r,
		unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Mandaic, unicode.Manichaean, unicode.Psalter_Pahlavi,
		unicode.Phags_Pa, unicode.Adlam, unicode.Hanifi_Rohingya, unicode.Sogdian,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Balinese, unicode.Javanese)
}

// viramas are the signs of Indic scripts that suppress a consonant's vowel (Indic_Syllabic_Category Virama).
const viramas = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u17d2\u1b44\ua9c0"

// escape returns the escape that [Visible] writes for a hidden character or an invalid byte.
func escape(s string, json bool) string {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == '\r':
		return `\r`
	case json && r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	case json:
		return fmt.Sprintf(`\u%04x`, r)
	case size == 1:
		return fmt.Sprintf(`\x%02x`, s[0])
	}
	return fmt.Sprintf(`\u{%x}`, r)
}

// Hidden reverses [Visible] and [VisibleLine]: it returns the original bytes of an escaped name. Escapes that neither
// function writes are kept, for example the literal text \x41. A name with the literal text \x1b cannot be
// distinguished from a name with an escape character; callers should try the name as given first.
func Hidden(shown string) string {
	var b []byte
	for {
		i := strings.IndexByte(shown, '\\')
		if i < 0 {
			return string(append(b, shown...))
		}
		b = append(b, shown[:i]...)
		n := 0
		if b, n = unhide(b, shown[i:]); n == 0 {
			b, n = append(b, '\\'), 1
		}
		shown = shown[i+n:]
	}
}

// unhide decodes the escape at the start of s and appends the result to b. n is the length of the escape; 0 if s does
// not start with one.
func unhide(b []byte, s string) (_ []byte, n int) {
	switch {
	case strings.HasPrefix(s, `\r`):
		return append(b, '\r'), 2
	case strings.HasPrefix(s, `\x`):
		if c, ok := hexadecimal(s[2:], 2); ok && (c >= 0x80 || c == '\n' || hidingOf(c) != visible) {
			return append(b, byte(c)), 4
		}
	case strings.HasPrefix(s, `\u{`):
		if end := strings.IndexByte(s[:min(len(s), 10)], '}'); end > 3 {
			if r, ok := hexadecimal(s[3:], end-3); ok && hidingOf(r) != visible && r >= 0x80 {
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
		if hidingOf(r) != visible {
			return utf8.AppendRune(b, r), n
		}
	}
	return b, 0
}

// hexadecimal parses n hexadecimal digits in lower case, which is the case that Visible writes.
func hexadecimal(s string, n int) (rune, bool) {
	if len(s) < n || strings.ToLower(s[:n]) != s[:n] {
		return 0, false
	}
	v, err := strconv.ParseUint(s[:n], 16, 32)
	return rune(v), err == nil && v <= unicode.MaxRune
}
