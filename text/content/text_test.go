package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const prose = "Größe, naïve, 世界, Привет, שלום, 😀.\nA second line.\r\nAnd “quotes” — too\n"

func utf16Bytes(s string, big bool) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return b
}

func utf32Bytes(s string, big bool) []byte {
	var b []byte
	for _, r := range s {
		if big {
			b = append(b, byte(r>>24), byte(r>>16), byte(r>>8), byte(r))
		} else {
			b = append(b, byte(r), byte(r>>8), byte(r>>16), byte(r>>24))
		}
	}
	return b
}

func latin1Bytes(s string) []byte {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return b
}

func TestDecode(t *testing.T) {
	german := "Die Größe der Füße: 5 µm, §3\nÜber allem\n"
	random := make([]byte, 5000)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(random)
	long := strings.Repeat(prose, 2000)
	for _, tt := range []struct {
		name   string
		stored []byte
		want   string
		enc    Encoding
	}{
		{"utf-8", []byte(prose), prose, UTF8},
		{"ascii", []byte("abc\n"), "abc\n", UTF8},
		{"empty", nil, "", UTF8},
		{"utf-8 with BOM", []byte("\xef\xbb\xbf" + prose), prose, UTF8BOM},
		{"utf-16le", append([]byte("\xff\xfe"), utf16Bytes(prose, false)...), prose, UTF16LE},
		{"utf-16be", append([]byte("\xfe\xff"), utf16Bytes(prose, true)...), prose, UTF16BE},
		{"utf-32le", append([]byte("\xff\xfe\x00\x00"), utf32Bytes(prose, false)...), prose, UTF32LE},
		{"utf-32be", append([]byte("\x00\x00\xfe\xff"), utf32Bytes(prose, true)...), prose, UTF32BE},
		{"utf-16le, no BOM", utf16Bytes(prose, false), prose, UTF16LE},
		{"utf-16be, no BOM", utf16Bytes(prose, true), prose, UTF16BE},
		{"utf-32le, no BOM", utf32Bytes(prose, false), prose, UTF32LE},
		{"utf-32be, no BOM", utf32Bytes(prose, true), prose, UTF32BE},
		{"utf-16le, no BOM, Chinese", utf16Bytes("战争与和平，第一部。\r\n第一章 开头\r\n", false), "战争与和平，第一部。\r\n第一章 开头\r\n", UTF16LE},
		{"utf-16le, two letters", utf16Bytes("hi", false), "hi", UTF16LE},
		{"utf-16le, long", utf16Bytes(long, false), long, UTF16LE},
		{"utf-16le, a pair across the end of the prefix", utf16Bytes(
			"x"+strings.Repeat("a 😀", 20000), false,
		), "x" + strings.Repeat("a 😀", 20000), UTF16LE},
		{"latin-1", latin1Bytes(german), german, Latin1},
		{"windows-1252", []byte("\x93Well\x94, he said \x96 caf\xe9 \x80 5"), "“Well”, he said – café € 5", Latin1},
		{"latin-1, long", latin1Bytes(strings.Repeat(german, 4000)), strings.Repeat(german, 4000), Latin1},
		{"UTF-8, cut within its last letter", []byte("\xc7\x85A\xe6\x96"), "ǅA\xe6\x96", UTF8},
		{"utf-8, a bad byte", []byte("世界 caf\xff 世界"), "世界 caf\xff 世界", UTF8},
		{"utf-8, a rune across the end of the prefix", []byte(
			"a" + strings.Repeat("世", 40000),
		), "a" + strings.Repeat("世", 40000), UTF8},
		{"ascii, a bad byte", []byte("a log line with \xff in it\n"), "a log line with \xff in it\n", UTF8},
		{"colours", []byte("\x1b[31mred\x1b[0m and \b back\n"), "\x1b[31mred\x1b[0m and \b back\n", UTF8},
		{"one NUL in much text", []byte(
			strings.Repeat("much text\n", 200) + "\x00",
		), strings.Repeat("much text\n", 200) + "\x00", UTF8},
		{"NULs", []byte("a\x00b"), "a\x00b", NoText},
		{"names with NULs", []byte("./one\x00./two\x00./three\x00"), "./one\x00./two\x00./three\x00", NoText},
		{"random", random, string(random), NoText},
		{"png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", NoText},
		{"pdf", []byte(
			"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
		), "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", NoText},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader} {
				d, e, err := Decode(wrap(bytes.NewReader(tt.stored)))
				expect.Must(t, err)
				got, err := io.ReadAll(d)
				if e != tt.enc || string(got) != tt.want || err != nil {
					t.Errorf("%s %q %v\nwant %s %q", e, clipped(string(got)), err, tt.enc, clipped(tt.want))
				}
			}
		})
	}
}

func clipped(s string) string { return s[:min(len(s), 200)] }

// What is stored in any encoding comes back as it was.
func TestDecodeRoundTrip(t *testing.T) {
	letters := rapid.StringOf(rapid.RuneFrom([]rune("abc äöü ßéñ,.\n\t世界Привет😀")))
	rapid.Check(t, func(t *rapid.T) {
		s := letters.Draw(t, "text")
		for want, stored := range map[Encoding][]byte{
			UTF8: []byte(s), UTF8BOM: []byte("\xef\xbb\xbf" + s),
			UTF16LE: append(
				[]byte("\xff\xfe"), utf16Bytes(s, false)...,
			), UTF16BE: append([]byte("\xfe\xff"), utf16Bytes(s, true)...),
			UTF32BE: append([]byte("\x00\x00\xfe\xff"), utf32Bytes(s, true)...),
		} {
			d, e, err := Decode(bytes.NewReader(stored))
			expect.Must(t, err)
			if got, _ := io.ReadAll(d); e != want || string(got) != s {
				t.Fatalf("%s %q, want %s %q", e, got, want, s)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range [][]byte{[]byte(prose), utf16Bytes(prose, false), utf32Bytes("ab", true), []byte("caf\xe9"), {0xff, 0xfe, 0}, {0xef, 0xbb}} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		d, e, err := Decode(bytes.NewReader(stored))
		expect.Must(t, err)
		got, err := io.ReadAll(d)
		expect.Must(t, err)
		switch e {
		case UTF8, NoText:
			if !bytes.Equal(got, stored) {
				t.Errorf("%s changed %q to %q", e, stored, got)
			}
		case UTF8BOM:
			expect.Equal(t, string(got), string(stored[3:]), "%s changed %q", e, stored)
		default:
			if !utf8.Valid(got) {
				t.Errorf("%s made %q of %q", e, got, stored)
			}
		}
	})
}

func TestVisible(t *testing.T) {
	for _, tt := range expect.Table[struct{ Name, In, Want, JSON string }](t, "testdata/visible.tsv") {
		t.Run(tt.Name, func(t *testing.T) {
			expect.Equal(t, Visible(tt.In, false), tt.Want)
			expect.Equal(t, Visible(tt.In, true), tt.JSON, "JSON")
			if strings.ContainsRune(tt.In, '\\') {
				return
			}
			expect.Equal(t, Hidden(Visible(tt.In, false)), tt.In, "back it")
			if got := Hidden(Visible(tt.In, true)); utf8.ValidString(tt.In) && got != tt.In {
				t.Errorf("back from JSON it is %q", got)
			}
		})
	}
}

func TestVisibleLeavesWhatIsPlainAlone(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() { Visible(prose, false) }); n != 0 {
		t.Errorf("%v allocations for a text with nothing hidden", n)
	}
}

func TestHiddenTakesBackOnlyWhatVisibleWrites(t *testing.T) {
	for _, s := range []string{`\x41`, `\u{41}`, `\u0041`, `\x`, `\u{`, `\u{}`, `\u{110000}`, `\u12`, `\q`, `\`, `\x1B`, `\u{202E}`, `\ud800`, `\ud800\u0041`} {
		expect.Equal(t, Hidden(s), s, "became")
	}
}

func checkVisible(t expect.TB, s string) {
	for _, asJSON := range []bool{false, true} {
		v := Visible(s, asJSON)
		expect.Equal(t, Visible(v, asJSON), v, "%q shows", s)
		if !utf8.ValidString(v) {
			t.Errorf("%q shows as invalid %q", s, v)
		}
		for i := range len(v) {
			if c := v[i]; c < 0x20 && c != '\t' && c != '\n' && (c != '\r' || i+1 == len(v) || v[i+1] != '\n') {
				t.Errorf("%q shows as %q, with a control character", s, v)
			}
		}
		for _, r := range v {
			switch hidingOf(r) {
			case hidden:
				expect.Equal(t, r, '\r', "%q shows as %q", s, v)
			}
		}
		if line := VisibleLine(s); strings.Contains(line, "\n") || !strings.Contains(s, `\`) && Hidden(line) != s {
			t.Errorf("%q is the line %q, and back %q", s, line, Hidden(line))
		}
		if !strings.Contains(s, `\`) && (!asJSON || utf8.ValidString(s)) {
			expect.Equal(t, Hidden(v), s, "shows as %q, and is back", v)
		}
	}
	if utf8.ValidString(s) {
		// In a JSON string it still means the same.
		quoted, _ := json.Marshal(s)
		var back string
		if err := json.Unmarshal([]byte(Visible(string(quoted), true)), &back); err != nil || back != s {
			t.Errorf("%q in JSON is %q after it was made visible: %v", s, back, err)
		}
	}
}

func TestVisibleProperties(t *testing.T) {
	odd := []rune(
		"a1#\\\r\n\t\x1b\x7f\u0085\u00ad\u200b\u200c\u200d\u202e\ufe0f\ufe01\ufeff\U000e0067\U000e007f\U000e0101😀❤🏴🏽👩\u20e3क्षمی世\u180bᠠ\ufffd",
	)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.OneOf(rapid.RuneFrom(odd), rapid.Rune())).Draw(t, "text")
		if rapid.Bool().Draw(t, "invalid") {
			i := rapid.IntRange(0, len(s)).Draw(t, "at")
			s = s[:i] + "\xe4\xb8" + s[i:]
		}
		checkVisible(t, s)
	})
}

func FuzzVisible(f *testing.F) {
	f.Add("👩🏽‍🚀 a\u202eb\r\n\xff\\x1b")
	f.Add("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f1\ufe0f\u20e3")
	f.Add("می\u200cخواهم क्\u200dष \\ud83d\\ude00")
	f.Fuzz(func(t *testing.T, s string) { checkVisible(t, s) })
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{
		{"short", 5, "short"},
		{"", 0, ""},
		{"x", 0, ""},
		{"abcdefgh", 4, "abc…"},
		{"abcdefgh", 1, "…"},
		{strings.Repeat("a", 50) + strings.Repeat("b", 50), 40, strings.Repeat("a", 14) + "… 73 chars …" +
			strings.Repeat("b", 13)},
		{strings.Repeat("世", 60), 30, strings.Repeat("世", 9) + "… 42 chars …" + strings.Repeat("世", 9)},
		{"e\u0301e\u0301e\u0301", 4, "e\u0301…"},
	} {
		expect.Equal(t, Clip(tt.in, tt.max), tt.want, "Clip(%q, %d)", tt.in, tt.max)
	}
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{
		{"short", 5, "short"}, {"a/long/path/name.go", 12, "a/long….go"}, {"世界世界世界", 12, "世界…界"}, {"abcdef", 3, "…"}, {"abcdef", 2, ""},
	} {
		expect.Equal(t, ClipBytes(tt.in, tt.max), tt.want, "ClipBytes(%q, %d)", tt.in, tt.max)
	}
}

// borders are the places of s between graphemes.
func borders(s string) map[int]bool {
	at := map[int]bool{0: true}
	n := 0
	for g := graphemes.FromString(s); g.Next(); {
		n += len(g.Value())
		at[n] = true
	}
	return at
}

func TestClipProperties(t *testing.T) {
	runes := []rune("ab e\u0301\u0301\u200d👩🏽🚀🇩🇪🇫🇷क्षি\r\n한각世")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom(runes), 0, 200, -1).Draw(t, "text")
		limit := rapid.IntRange(0, 100).Draw(t, "max")
		got := Clip(s, limit)
		if n := utf8.RuneCountInString(got); n > limit {
			t.Fatalf("%d runes, at most %d: %q", n, limit, got)
		}
		if utf8.RuneCountInString(s) <= limit {
			expect.MustEqual(t, got, s, "clipped")
			return
		}
		check := func(head, tail string) {
			if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) {
				t.Fatalf("%q and %q are no ends of %q", head, tail, s)
			}
			if b := borders(s); !b[len(head)] || !b[len(s)-len(tail)] {
				t.Fatalf("%q: cut inside a grapheme: %q … %q", s, head, tail)
			}
		}
		head, rest, ok := strings.Cut(got, "… ")
		if !ok {
			check(strings.TrimSuffix(got, "…"), "")
		} else {
			var n int
			if _, err := fmt.Sscanf(rest, "%d chars …", &n); err != nil {
				t.Fatal(got, err)
			}
			_, tail, _ := strings.Cut(rest, " chars …")
			if utf8.RuneCountInString(head)+n+utf8.RuneCountInString(tail) != utf8.RuneCountInString(s) {
				t.Fatalf("%q of %q: the count is wrong", got, s)
			}
			check(head, tail)
		}
		if b := ClipBytes(s, limit); len(b) > limit {
			t.Fatalf("%d bytes, at most %d", len(b), limit)
		} else if head, tail, ok := strings.Cut(b, "…"); ok {
			check(head, tail)
		}
	})
}

func TestClipOfAMegabyteOfMarks(t *testing.T) {
	s := "x" + strings.Repeat("\u0301", 1<<20) + "y"
	if got := Clip(s, 100); utf8.RuneCountInString(got) > 100 || !strings.HasSuffix(got, "y") {
		t.Errorf("%q", got)
	}
}

func TestClipEndKeepsCharsWhole(t *testing.T) {
	for _, c := range []struct {
		s    string
		max  int
		want string
	}{
		{"short", 5, "short"}, {"too long", 6, "too…"}, {"aé日本語", 7, "aé…"}, {"日本語", 8, "日…"}, {"日本語", 9, "日本語"}, {"日本語", 2, ""}, {"abcdef", 3, "…"}, {"", 0, ""},
	} {
		if got := ClipEnd(c.s, c.max); got != c.want || len(got) > c.max {
			t.Errorf("%q at %d: %q, want %q", c.s, c.max, got, c.want)
		}
	}
}

// Most texts are told to be UTF-8 without a census, which says the same of them.
func TestPlainUTF8IsWhatTheCensusFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"plain words ", "\n", "\t", "é", "数据", "🙂", "\x01", "\x7f", "\x1b[0m", "\xe9", "\x00", "x"}
	told := 0
	for range 20_000 {
		var b []byte
		kinds := 1 + r.IntN(len(pieces))
		for range r.IntN(40) {
			b = append(b, pieces[r.IntN(kinds)]...)
		}
		b = b[:r.IntN(len(b)+1)]
		whole := r.IntN(2) == 0
		if !plainUTF8(b, whole) {
			continue
		}
		told++
		if c := countBytes(b, whole); bytes.IndexByte(b, 0) >= 0 || c.control*20 > len(b) || c.invalid > 0 && c.multi < 2*c.invalid {
			t.Fatalf("%q, whole %v: %+v", b, whole, c)
		}
	}
	if told < 5000 {
		t.Errorf("of 20,000 texts %d are plain", told)
	}
}
