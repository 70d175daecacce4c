package extract

import (
	"strings"
	"unicode/utf8"
)

// symbolRunes has the characters of fonts of symbols, by font and code.
var symbolRunes = map[string]map[rune]rune{
	"symbol": sequences(0x20, ` !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾`,
		0x61, `αβχδεφγηιϕκλµνοπθρστυϖωξψζ{|}∼`,
		0xa0, `€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪`,
		0xf1, `〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭`),
	"wingdings": sequences(0x20, ` ✏✂✁`, 0x28, `☎✆✉`, 0x36, `⌛⌨`, 0x3e, `✇✍`, 0x41, `✌👌👍👎☜☞☝☟✋☺😐☹💣☠`,
		0x51, `✈☼💧❄`, 0x6c, `●❍■☐◻❑❒⬧⧫◆❖⬥⌧`, 0x7b, `❀✿❝❞`, 0x80, `⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿`,
		0x9e, `·•▪○`, 0xa4, `◉◎`, 0xa7, `▪☐`, 0xab, `★✶✴✹`, 0xd5, `⌫⌦`, 0xd8, `➢`, 0xdf, `←→↑↓↖↗↙↘`,
		0xe8, `➔`, 0xef, `⇦⇨⇧⇩⬄⇳`, 0xfb, `✗✔☒☑`),
	"wingdings 2": sequences(0x4f, `✗✓☒☑☒☒`, 0x96, `●`, 0xa2, `■☐`),
	"webdings":    sequences(0x61, `✔`, 0x63, `☐`, 0x67, `■`, 0x6e, `●`, 0x72, `✗`),
}

// sequences returns a map of characters from pairs of a code and the characters from there on.
func sequences(pairs ...any) map[rune]rune {
	all := map[rune]rune{}
	for i := 0; i < len(pairs); i += 2 {
		at := rune(pairs[i].(int))
		for _, r := range pairs[i+1].(string) {
			all[at] = r
			at++
		}
	}
	return all
}

// symbolFont returns the name of a font of symbols, in lower case; "" for other fonts.
func symbolFont(name string) string {
	if name = strings.ToLower(name); symbolRunes[name] == nil && !strings.Contains(name, "dings") {
		return ""
	}
	return name
}

// symbols returns text with the characters that a font of symbols shows, and the number of those that are not known.
// Documents have them from U+F020 on, or as characters of Latin-1 if the text is a symbol or two.
func symbols(font, text string) (string, int) {
	unknown, few := 0, utf8.RuneCountInString(text) <= 2
	return strings.Map(func(r rune) rune {
		private := r >= 0xf020 && r <= 0xf0ff
		if !private && (font == "" || !few || r > 0xff || r <= ' ') {
			return r
		}
		shown, ok := symbolRunes[font][r&0xff]
		if !ok {
			unknown++
			return -1
		}
		return shown
	}, text), unknown
}
