package shown_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// hiddenKinds are what is not seen, or acts on a terminal, by kind.
var hiddenKinds = map[string]string{
	"NUL": "\x00", "bell": "\a", "backspace": "\b", "vertical tab": "\v", "form feed": "\f", "lone CR": "\r", "shift out": "\x0e", "escape": "\x1b", "delete": "\x7f", "unit separator": "\x1f",
	"ANSI colour": "\x1b[31;1m", "ANSI clear": "\x1b[2J\x1b[H", "OSC title": "\x1b]0;owned\x07", "OSC 8 link": "\x1b]8;;http://evil.test\x1b\\x\x1b]8;;\x1b\\", "OSC 52 clipboard": "\x1b]52;c;ZXZpbA==\x07",
	"DCS": "\x1bP1$r0m\x1b\\", "APC": "\x1b_G\x1b\\", "C1 CSI": "\u009b31m", "C1 NEL": "\u0085", "C1 raw byte": "\x9b31m",
	"RLO": "\u202e", "LRO": "\u202d", "RLE": "\u202b", "LRE": "\u202a", "PDF": "\u202c", "LRI": "\u2066", "RLI": "\u2067", "FSI": "\u2068", "PDI": "\u2069", "LRM": "\u200e", "RLM": "\u200f", "ALM": "\u061c",
	"zero-width space": "\u200b", "zero-width joiner": "\u200d", "zero-width non-joiner": "\u200c", "word joiner": "\u2060", "invisible times": "\u2062", "invisible plus": "\u2064",
	"byte order mark inside": "x\ufeffx", "soft hyphen": "\u00ad", "combining grapheme joiner": "\u034f", "Mongolian vowel separator": "a\u180e",
	"tags": "\U000e0001\U000e0041\U000e0042", "variation selector 16": "a\ufe0f", "variation selectors as bits": "a\ufe00\ufe01\U000e0100\U000e01ef", "interlinear": "\ufff9a\ufffab\ufffb",
	"line separator": "\u2028", "paragraph separator": "\u2029", "deprecated format": "\u206a\u206f", "Hangul filler": "\u3164\u115f\uffa0", "musical format": "\U0001d173\U0001d17a", "shorthand format": "\U0001bca0",
	"noncharacter": "\ufdd0\uffff\U0001fffe", "invalid UTF-8": "a\xffb\xc3(\xe2\x82", "overlong": "\xc0\xaf", "surrogate in UTF-8": "\xed\xa0\x80", "Khmer inherent vowel": "\u17b4",
}

// seenAll says what of a text is not seen, by Unicode's own properties and not by the code under test; "" for nothing.
func seenAll(s string) string {
	if !utf8.ValidString(s) {
		return "invalid UTF-8"
	}
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case unicode.In(
			r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
			unicode.Noncharacter_Code_Point,
		),
			unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r):
			return fmt.Sprintf("%U in %.60q", r, s[max(0, i-20):min(len(s), i+20)])
		}
	}
	return ""
}

// hiddenIn shows the kinds everywhere, several in one text, and counts what is not seen.
func hiddenIn(t *testing.T, texts []string, tell func(format string, args ...any)) (cases, failures int) {
	for _, h := range texts {
		home := houseIn(t, funnel.Options{Mask: maskOf()})
		name := strings.NewReplacer("\x00", "", "/", "", "\\", "").Replace("n" + h + "n")
		for where, text := range home.everywhere("mid"+h+"dle", name[:min(len(name), 200)]) {
			cases++
			if hides := seenAll(text); hides != "" {
				failures++
				tell("%q, %s: %s", h, where, hides)
			}
		}
	}
	return cases, failures
}

// TestS21HiddenCharactersAreSeen shows each kind in every place from which text comes, and holds what is kept to what
// was written.
func TestS21HiddenCharactersAreSeen(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(hiddenKinds))
	if testing.Short() && !promise.Full() {
		kinds = []string{"ANSI clear", "C1 raw byte", "RLO", "invalid UTF-8", "line separator", "tags"}
	}
	var texts []string
	for some := range slices.Chunk(kinds, promise.Size(12, 1)) {
		var b strings.Builder
		for _, k := range some {
			b.WriteString("x" + hiddenKinds[k] + "y ")
		}
		texts = append(texts, b.String())
	}
	cases, failures := hiddenIn(t, texts, t.Errorf)
	home := houseIn(t, funnel.Options{Mask: maskOf()})
	for _, kind := range kinds {
		h := hiddenKinds[kind]
		in := []byte(strings.Repeat("mid"+h+"dle of a line\n", 500))
		a := home.run(upstream(string(in), "", nil), nil)
		r := expect.Value(home.store.Open(observations.Local, observations.ID(a.Receipts[0].ObservationID)))(t)
		kept, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		_ = r.Close()
		cases++
		if err != nil || !bytes.Equal(kept, in) {
			failures++
			t.Errorf("%s: what is kept is not what was written (%v)", kind, err)
		}
	}
	control := 0
	withoutVisible(func() {
		_, control = hiddenIn(t, []string{"\u202e and \x1b[2J"}, func(string, ...any) {})
	})
	promise.Keptf(t, promise.Proof{Promise: "S21", Cases: cases, Failures: failures, Control: control},
		"%d kinds", len(kinds))
}
