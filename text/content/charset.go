package content

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// perhaps precedes the name of an encoding that is only likely.
const perhaps = "perhaps "

// Certain reports whether the encoding is not only a guess.
func (e Encoding) Certain() bool { return !strings.HasPrefix(string(e), perhaps) }

// Note says that a text was decoded.
func (e Encoding) Note() string {
	if !e.Certain() {
		return "not UTF-8: read as " + strings.TrimPrefix(string(e), perhaps) + ", which is a guess"
	}
	return "decoded from " + string(e)
}

// legacy returns an encoding by its name; nil for Unicode, binary data and unknown names.
func (e Encoding) legacy() encoding.Encoding {
	switch e {
	case "", UTF8, UTF8BOM, NoText:
		return nil
	case Latin1, Unknown:
		return charmap.Windows1252
	case perhaps + "cp850":
		return charmap.CodePage850
	}
	enc, err := htmlindex.Get(strings.TrimPrefix(string(e), perhaps))
	if err != nil {
		return nil
	}
	return enc
}

// sampleSize is the number of bytes by which an encoding is detected.
const sampleSize = 2 << 10

// short marks what the detector does not know, or only of longer texts.
const short = "short"

// alike has the encodings that the detector takes for one; the more common first.
var alike = map[string][]Encoding{
	"ISO-8859-1": {Latin1}, "windows-1252": {Latin1}, "ISO-8859-9": {"windows-1254"},
	"ISO-8859-2": {"windows-1250", "iso-8859-2"}, "windows-1250": {"windows-1250", "iso-8859-2"},
	"ISO-8859-7": {"windows-1253", "iso-8859-7"}, "windows-1253": {"windows-1253", "iso-8859-7"},
	"ISO-8859-8": {"windows-1255"}, "ISO-8859-8-I": {"windows-1255"}, "GB18030": {"gbk", "gb18030"},
}

// declared finds the name of an encoding in the first bytes of XML, HTML, CSS and source code.
var declared = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:encoding|charset|coding)\s*[=: ]\s*["']?([-\w]{3,20})`)
})

// guess is a possible encoding of a text.
type guess struct {
	Encoding
	text  string
	score float64 // up to 100; 120 for latin-1
	words float64 // how much of the text is in words of one script, up to 1
}

// legacyEncoding returns the encoding of a text that is not Unicode, by its declaration or a detector; "" if the text
// makes sense in none.
func legacyEncoding(p []byte) Encoding {
	text := wordsBeyondASCII(p)
	if m := declared().FindSubmatch(p[:min(len(p), 1024)]); m != nil {
		name := strings.ToLower(string(m[1]))
		if e := Encoding(name); newGuess(e, text, 0).words > 0 && !strings.HasPrefix(name, "utf") {
			return e
		}
	}
	sample := text
	if !newGuess(Latin1, text, 0).foreign() { // the words between tell languages of Latin letters apart
		sample = linesBeyondASCII(p)
	}
	found, _ := chardet.NewTextDetector().DetectAll(sample)
	found = append(found, chardet.Result{Charset: "ISO-8859-1", Confidence: 1})
	for _, name := range []string{"windows-1251", "koi8-r", "ibm866", perhaps + "cp850"} {
		found = append(found, chardet.Result{Charset: name, Confidence: 25, Language: short})
	}
	beyond := 0
	for _, b := range text {
		beyond += int(b >> 7)
	}
	var all []guess
	for _, r := range found {
		var g guess
		for _, e := range append(alike[r.Charset], Encoding(strings.ToLower(r.Charset))) {
			of := newGuess(e, text, float64(r.Confidence))
			if e == Latin1 && of.words >= 0.9 && !of.foreign() { // by far the most common
				of.score += 20
			}
			if of.words > g.words {
				g = of
			}
		}
		if g.words > 0.5 && (r.Language != short || g.words >= 0.95 && beyond >= 3) {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(a, b guess) int { // the detector works concurrently: its ties have no order
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.words, a.words), cmp.Compare(a.rank(), b.rank()),
			strings.Compare(string(a.Encoding), string(b.Encoding)))
	})
	return best(all)
}

// rank returns the place of an encoding among those that are common.
func (g guess) rank() int {
	i := slices.Index([]Encoding{"euc-jp", "big5", "euc-kr", "shift_jis", "windows-1251", "gbk", Latin1}, g.Encoding)
	return -i
}

// best returns the first of the guesses, which is certain if others that read differently are far behind.
func best(all []guess) Encoding {
	first, next := all[0], 0.0
	for _, g := range all[1:] {
		switch {
		case g.text != first.text:
			next = max(next, g.score)
		case g.rank() < first.rank():
			first.Encoding = g.Encoding
		}
	}
	certain := first.score >= 40 && first.score-next >= 15
	if first.Encoding == Latin1 {
		certain = certain || first.words >= 0.9
		if first.foreign() || next >= 25 && next > first.score-20 {
			return Unknown
		}
	}
	switch {
	case certain || !first.Certain():
		return first.Encoding
	case first.Encoding == Latin1:
		return Unknown
	}
	return perhaps + first.Encoding
}

// foreign reports whether more letters of the words have accents than not, as in no language of latin-1.
func (g guess) foreign() bool {
	n := 0
	for _, r := range g.text {
		switch {
		case !unicode.IsLetter(r):
		case r < utf8.RuneSelf:
			n--
		default:
			n++
		}
	}
	return n > 1
}

// newGuess decodes a text and rates the result. Its fields are zero if the text cannot be in the encoding.
func newGuess(e Encoding, text []byte, confidence float64) guess {
	enc := e.legacy()
	if enc == nil {
		return guess{}
	}
	decoded, err := enc.NewDecoder().Bytes(text)
	if err != nil {
		return guess{}
	}
	words := wordShare(string(decoded))
	score := confidence
	if score == 10 && commonLead[e] != "" { // what the detector says of all texts of few characters in two bytes
		common := commonShare(e, text)
		score = 30 * common * common
	}
	return guess{e, string(decoded), score * words, words}
}

// commonLead has the ranges of the first bytes of common characters.
var commonLead = map[Encoding]string{
	"gbk": "\xb0\xd7", "shift_jis": "\x82\x83\x88\x97", "euc-kr": "\xb0\xc8", "big5": "\xa4\xc6",
	"euc-jp": "\xa4\xa5\xb0\xcf",
}

// commonShare returns which share of the characters of two bytes are common.
func commonShare(e Encoding, text []byte) float64 {
	all, common := 1e-9, 0.0
	for i := 0; i < len(text); i++ {
		b := text[i]
		if b < utf8.RuneSelf || e == "shift_jis" && b >= 0xa0 && b <= 0xdf {
			continue
		}
		all++
		for r := commonLead[e]; r != ""; r = r[2:] {
			if b >= r[0] && b <= r[1] {
				common++
			}
		}
		i++
	}
	return common / all
}

// wordsBeyondASCII returns the first words of a text with other bytes than ASCII, up to 4 KiB: others only say that the
// text is in English, or source code. A word ends at a sign that is no part of a character of several bytes.
func wordsBeyondASCII(p []byte) (some []byte) {
	for start := 0; start < len(p) && len(some) < sampleSize; {
		end, beyond := start, false
		for end < len(p) && (p[end] >= '@' || p[end] >= '0' && p[end] <= '9') && end-start < sampleSize {
			beyond = beyond || p[end] >= utf8.RuneSelf
			end++
		}
		if beyond {
			some = append(append(some, p[start:end]...), ' ')
		}
		start = end + 1
	}
	for i := len(some); i > 0; i-- { // end with a whole character
		if some[i-1] < utf8.RuneSelf {
			return some[:i]
		}
	}
	return some
}

// linesBeyondASCII returns the first lines of a text with other bytes than ASCII, up to 4 KiB.
func linesBeyondASCII(p []byte) (some []byte) {
	for line := range bytes.Lines(p) {
		if bytes.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) {
			if some = append(some, line...); len(some) >= sampleSize {
				return some[:sampleSize]
			}
		}
	}
	return some
}

// wordShare returns which share of the characters beyond ASCII fit to their neighbours as they do in words and
// between them; 0 if a hundredth of them are none that a text has.
func wordShare(text string) float64 {
	all, bad, fit := 0, 0, 0.0
	rs := []rune(text)
	for i, r := range rs {
		if r < utf8.RuneSelf {
			continue
		}
		all++
		before, after := ' ', ' '
		if i > 0 {
			before = rs[i-1]
		}
		if i+1 < len(rs) {
			after = rs[i+1]
		}
		switch {
		case r == utf8.RuneError, !unicode.IsGraphic(r), unicode.Is(unicode.Co, r):
			bad++
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Hangul, unicode.Katakana):
			switch within := latin(before) && latin(after); {
			case within:
			case r >= 0xff61 && r <= 0xff9f: // half-width, which many other texts decode to
				if before >= 0xff61 || after >= 0xff61 {
					fit += 0.6
				}
			default:
				fit++
			}
		case unicode.IsLetter(r), unicode.IsMark(r):
			fit += letterFit(before, r, after)
		default:
			fit += signFit(before, r, after)
		}
	}
	if all == 0 || bad*100 > all {
		return 0
	}
	return fit / float64(all)
}

// signFit rates a sign by its neighbours.
func signFit(before, r, after rune) float64 {
	switch within := unicode.IsLetter(before) && unicode.IsLetter(after); {
	case r == '’', r == '·':
		return 1
	case within, r >= 0x2500 && r < 0x25a0, unicode.Is(unicode.Sk, r): // lines of frames, loose accents
		return 0
	}
	return 0.9
}

// oneLetterWords are words of one letter.
const oneLetterWords = "àáâäèéìíñòóôöøúüåæ" + "авиокус"

// letterFit rates a letter by its neighbours.
func letterFit(before, r, after rune) float64 {
	switch {
	case unicode.IsMark(r) && !unicode.IsLetter(before) && !unicode.IsMark(before):
		return 0
	case unicode.IsLetter(before) && !sameScript(before, r), unicode.IsLetter(after) && !sameScript(after, r),
		unicode.IsLower(before) && unicode.IsUpper(r), r == 'ÿ', r == 'þ':
		return 0
	case unicode.IsUpper(before) && unicode.IsUpper(r):
		return 0.9 // the other case in another encoding
	case unicode.IsLetter(before), unicode.IsLetter(after):
		return 1
	case strings.ContainsRune(oneLetterWords, r):
		return 1
	case unicode.IsLower(r):
		return 0.4
	}
	return 0
}

func latin(r rune) bool { return unicode.Is(unicode.Latin, r) }

var alphabets = []*unicode.RangeTable{
	unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Hebrew, unicode.Arabic,
}

func sameScript(a, b rune) bool {
	for _, s := range alphabets {
		if unicode.Is(s, a) != unicode.Is(s, b) {
			return false
		}
	}
	return true
}
